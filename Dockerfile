# Serves an exported ONNX model, without Paddle (docs/guides/serving.md):
#   docker build -t paddle_rope .
#   docker run -p 8080:8080 -v /srv/models/mine:/model:ro paddle_rope
FROM python:3.11-slim

# only what the package is made of, so that neither data nor runs of a clone get into the image
WORKDIR /source
COPY pyproject.toml setup.py README.md LICENSE ./
COPY paddle_rope paddle_rope
COPY tasks tasks
COPY configs configs
RUN pip install --no-cache-dir '.[onnx,serve]' && rm -rf /source/*

RUN useradd --create-home --uid 1000 service
USER service
WORKDIR /home/service

# each option of `paddle-rope serve` is a variable PADDLE_ROPE_SERVE_...
ENV PADDLE_ROPE_SERVE_HOST=0.0.0.0 \
    PADDLE_ROPE_SERVE_PORT=8080 \
    PADDLE_ROPE_SERVE_LOG=json \
    PYTHONUNBUFFERED=1
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen(f'http://127.0.0.1:{os.environ[\"PADDLE_ROPE_SERVE_PORT\"]}/health', timeout=8)"]

ENTRYPOINT ["paddle-rope", "serve"]
CMD ["/model"]
