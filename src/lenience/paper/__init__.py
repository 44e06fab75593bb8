"""Every claim of Wei (2020), "Optimal Policies for the Homogeneous Selective Labels Problem", checked.

Each check computes what the claim says, by another method than the paper's if there is one, and returns a
:class:`Claim` with the numbers. The verdict *holds* means that no number contradicts the claim. *Holds with a
correction* means that the statement stands but a detail needs correcting. *Made precise* means that the paper leaves
open what is computed here. *Fails* means that the numbers contradict the claim.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
