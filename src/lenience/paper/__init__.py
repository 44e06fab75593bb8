"""Every claim of Wei (2020), "Optimal Policies for the Homogeneous Selective Labels Problem", checked.

Each check computes what the claim says, by a road other than the claim's own where there is one, and returns a
:class:`Claim` with the numbers found. A claim *holds* if nothing contradicts it here, *holds with a correction* if its
statement stands but a detail is to be put right, is *made precise* if the paper leaves open what is computed here, and
*fails* if the numbers contradict it. Nothing is assumed: a check that finds a contradiction says so.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
