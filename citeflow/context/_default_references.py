"""The built-in reference map: official documentation by keyword, for technical topics.

Only data. 19 keywords, 41 entries, 38 distinct addresses; keywords are matched in this order.
Other subjects replace the whole map through the setting `known_references_json`.
"""

from __future__ import annotations

__all__ = ["DEFAULT_REFERENCES"]

_ROWS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    ("fastapi", (
        ("FastAPI documentation", "https://fastapi.tiangolo.com"),
        ("FastAPI: concurrency and async", "https://fastapi.tiangolo.com/async/"),
        ("FastAPI: deployment", "https://fastapi.tiangolo.com/deployment/"),
    )),
    ("postgresql", (
        ("PostgreSQL documentation", "https://www.postgresql.org/docs/current/"),
        ("PostgreSQL: performance tips",
         "https://www.postgresql.org/docs/current/performance-tips.html"),
        ("PostgreSQL: indexes", "https://www.postgresql.org/docs/current/indexes.html"),
    )),
    ("docker", (
        ("Docker documentation", "https://docs.docker.com/"),
        ("Dockerfile reference", "https://docs.docker.com/reference/dockerfile/"),
    )),
    ("redis", (
        ("Redis documentation", "https://redis.io/docs/latest/"),
        ("Redis commands", "https://redis.io/docs/latest/commands/"),
    )),
    ("kafka", (
        ("Apache Kafka documentation", "https://kafka.apache.org/documentation/"),
        ("Kafka Streams", "https://kafka.apache.org/documentation/streams/"),
    )),
    ("kubernetes", (
        ("Kubernetes documentation", "https://kubernetes.io/docs/home/"),
        ("Kubernetes concepts", "https://kubernetes.io/docs/concepts/"),
    )),
    ("python", (
        ("Python documentation", "https://docs.python.org/3/"),
        ("Python packaging user guide", "https://packaging.python.org/"),
    )),
    ("asyncio", (
        ("asyncio: asynchronous I/O", "https://docs.python.org/3/library/asyncio.html"),
        ("Python documentation", "https://docs.python.org/3/"),
    )),
    ("typescript", (
        ("TypeScript documentation", "https://www.typescriptlang.org/docs/"),
        ("The TypeScript handbook", "https://www.typescriptlang.org/docs/handbook/intro.html"),
    )),
    ("react", (
        ("React: learn", "https://react.dev/learn"),
        ("React reference", "https://react.dev/reference/react"),
    )),
    ("next.js", (
        ("Next.js documentation", "https://nextjs.org/docs"),
        ("React: learn", "https://react.dev/learn"),
    )),
    ("rag", (
        ("Retrieval-augmented generation for knowledge-intensive NLP tasks",
         "https://arxiv.org/abs/2005.11401"),
        ("What is retrieval-augmented generation?",
         "https://aws.amazon.com/what-is/retrieval-augmented-generation/"),
    )),
    ("llm", (
        ("Attention is all you need", "https://arxiv.org/abs/1706.03762"),
        ("Transformers documentation", "https://huggingface.co/docs/transformers/index"),
    )),
    ("ai agent", (
        ("Building effective agents",
         "https://www.anthropic.com/engineering/building-effective-agents"),
        ("Model Context Protocol", "https://modelcontextprotocol.io/"),
    )),
    ("vector database", (
        ("pgvector", "https://github.com/pgvector/pgvector"),
        ("Qdrant documentation", "https://qdrant.tech/documentation/"),
    )),
    ("ci/cd", (
        ("GitHub Actions documentation", "https://docs.github.com/en/actions"),
        ("GitLab CI/CD documentation", "https://docs.gitlab.com/ci/"),
    )),
    ("github actions", (
        ("GitHub Actions documentation", "https://docs.github.com/en/actions"),
        ("GitHub documentation", "https://docs.github.com/en"),
    )),
    ("cloud", (
        ("AWS Well-Architected framework",
         "https://docs.aws.amazon.com/wellarchitected/latest/framework/welcome.html"),
        ("The NIST definition of cloud computing",
         "https://csrc.nist.gov/pubs/sp/800/145/final"),
    )),
    ("security", (
        ("OWASP Top Ten", "https://owasp.org/www-project-top-ten/"),
        ("OWASP cheat sheets", "https://cheatsheetseries.owasp.org/"),
        ("MDN: web security", "https://developer.mozilla.org/en-US/docs/Web/Security"),
    )),
)  # fmt: skip

DEFAULT_REFERENCES: dict[str, list[dict[str, str]]] = {
    keyword: [{"title": title, "url": url} for title, url in entries] for keyword, entries in _ROWS
}
