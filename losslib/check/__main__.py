"""Audit a loss from the command line: python -m losslib.check package.module:Loss --set margin=0.3."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence

from losslib.check.cause import cause, place
from losslib.check.loading import build_loss
from losslib.check.run import audit, checks

PASSED, FAILED, UNUSABLE = 0, 1, 2


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m losslib.check",
        description="Try a loss on the inputs on which losses go wrong.",
        epilog="exit status: 0 all checks passed, 1 a check failed, 2 the loss could not be loaded or called",
    )
    parser.add_argument("loss", nargs="?", help="package.module:Loss, or a class name of losslib")
    parser.add_argument(
        "--set", action="append", default=[], metavar="OPTION=VALUE", help="an option of the loss"
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--embedding-size", type=int, metavar="D", help="embedding size tried (default 8)")
    parser.add_argument("--classes", type=int, metavar="C", help="number of classes tried (default 3)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the batches tried (default 0)")
    parser.add_argument(
        "--only", action="append", metavar="CHECK", help="run this check alone (may be repeated)"
    )
    parser.add_argument("--skip", action="append", default=[], metavar="CHECK", help="leave this check out")
    parser.add_argument("--list", action="store_true", help="print the checks and why they matter")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the audit that the arguments describe; the exit status."""
    parser = _arguments()
    given = parser.parse_args(arguments)
    if given.list:
        print("\n".join(f"{found.name}: {found.why}" for found in checks().values()))
        return PASSED
    if given.loss is None:
        parser.error("which loss? give package.module:Loss")
    try:
        report = audit(
            build_loss(given.loss, given.set),
            embedding_size=given.embedding_size,
            num_classes=given.classes,
            seed=given.seed,
            only=given.only,
            skip=given.skip,
        )
    except Exception as error:
        reason = cause(error)
        if isinstance(error, TypeError) and not place(error):
            reason += "; a loss is called with embeddings and labels, and gives one number"
        print(reason if given.loss in reason else f"{given.loss}: {reason}", file=sys.stderr)
        return UNUSABLE
    print(report.to_json() if given.json else report)
    return PASSED if report.passed else FAILED


if __name__ == "__main__":
    if hasattr(signal, "SIGPIPE"):  # a reader that has seen enough, such as head, ends it quietly
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())
