"""
Fit the projection of the default model's token states, which the package ships.

    python benchmarks/token_projection.py DATABASE … [--passages N]

The databases are indexes of collections that nothing is measured on; ``qmd bench DIR --keep DIR``
makes such indexes of public collections. Give English and Chinese ones in equal parts. From each
database N chunks, spread evenly, are run through the model (about 50 ms each). The result replaces
``qmd/inference/embedded/token_projection.bin``. Codes that a database has were made by the former
projection; its hash is part of their recipe, so they are made again.
"""

from __future__ import annotations

import argparse
from importlib import resources
from pathlib import Path

import numpy as np

from qmd.inference.embedded import build
from qmd.inference.protocols import TokenStates, token_embedder
from qmd.inference.token_codes import fit_projection, pack, shipped
from qmd.kb import KnowledgeBase
from qmd.parse.chunk import embedded_text

FILE = "token_projection.bin"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("databases", nargs="+", type=Path, metavar="DATABASE")
    parser.add_argument("--passages", type=int, default=300, metavar="N", help="of each database")
    arguments = parser.parse_args()
    passages: list[TokenStates] = []
    for database in arguments.databases:
        some = states_of(database, arguments.passages)
        print(f"{database.name}: {len(some)} passages", flush=True)
        passages += some
    former = shipped()
    projection = fit_projection(passages)
    path = Path(str(resources.files(build.__package__).joinpath(FILE)))
    path.write_bytes(pack(projection))
    overlap = np.linalg.norm(former.axes.T @ projection.axes) ** 2 / projection.axes.shape[1]
    print(f"{path.stat().st_size:,} bytes; {overlap:.2f} of the variance of the former axes")


def states_of(database: Path, most: int) -> list[TokenStates]:
    """The token states of at most ``most`` chunks, spread evenly over a database."""
    with KnowledgeBase.open(database) as kb, kb._store.reading() as reader:
        model = reader.models.active()
        assert model is not None
        ids = sorted(row[0] for row in reader.vectors.all(model, reader.all_documents))
        chosen = ids[:: max(1, len(ids) // most)][:most]
        chunks = reader.tokens.texts(chosen)
        texts = [embedded_text(chunk.title, chunk.heading_path, chunk.text) for chunk in chunks]
        embedder = token_embedder(kb._embedders.query_embedder())
        assert embedder is not None
        _vectors, states = embedder.embed_passages_with_tokens(texts)
    return list(states)


if __name__ == "__main__":
    main()
