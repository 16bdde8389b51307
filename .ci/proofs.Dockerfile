# Check the formal proofs on a system without Debian's packages:
#   docker build -f .ci/proofs.Dockerfile -t frhsic-proofs . && docker run --rm frhsic-proofs
FROM debian:bookworm-slim
RUN apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
    python3 \
    coq libcoq-mathcomp-algebra libcoq-mathcomp-real-closed libcoq-mathcomp-algebra-tactics \
    libcoq-mathcomp-analysis \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /repository
COPY .ci/proofs .ci/proofs
COPY book/proofs book/proofs
CMD ["python3", ".ci/proofs"]
