"""Optimal decisions where applicants differ in the amount at stake and in the break-even."""
