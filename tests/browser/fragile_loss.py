"""A loss of somebody's own with a bug, loaded through LOSSLAB_LOSSES: its run breaks, the server does not."""

from losslib.losses.contrastive_loss import ContrastiveLoss

CALLS = 12


class FragileLoss(ContrastiveLoss):
    """Contrastive loss that raises after a few calls."""

    title = "Fragile"
    calls = 0

    def terms(self, pairs):
        self.calls += 1
        if self.calls > CALLS:
            raise RuntimeError("a secret of the inside")
        return super().terms(pairs)
