"""One loss taken apart: which one, its curves in a batch, what each option does, the force a point feels."""
