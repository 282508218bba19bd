"""Our RoFormer beside PaddleNLP's and Hugging Face's; see ``paddle-rope benchmark peers --help``."""
