import paddle_rope  # noqa: F401  before paddle and PaddleNLP: it sees to a home folder for them
