"""The attacks, one file each; `parse` reads them from text: `parse("alie(z=1.0)")`."""

from robagg.attacks.alie import ALIE
from robagg.attacks.backdoor import Backdoor
from robagg.attacks.base import Attack, Setup, State, View, attacks, parse
from robagg.attacks.bit_flip import BF
from robagg.attacks.clones import Clones
from robagg.attacks.dba import DBA
from robagg.attacks.decoy import Decoy
from robagg.attacks.fang import Fang
from robagg.attacks.gaussian import GA
from robagg.attacks.groups import Groups
from robagg.attacks.heap import Heap
from robagg.attacks.ipm import IPM
from robagg.attacks.label_flip import LF
from robagg.attacks.mimic import MIMIC
from robagg.attacks.minmax import MinMax
from robagg.attacks.minsum import MinSum
from robagg.attacks.mixed import Mixed
from robagg.attacks.neurotoxin import Neurotoxin
from robagg.attacks.no_attack import NoAttack
from robagg.attacks.non_finite import NonFinite
from robagg.attacks.optimal import Optimal
from robagg.attacks.replacement import Replacement
from robagg.attacks.rop import ROP
from robagg.attacks.scm import SCM
from robagg.attacks.sign_flip import SignFlip
from robagg.attacks.sparse import Sparse
from robagg.attacks.varying import Varying

__all__ = [
    "ALIE",
    "BF",
    "GA",
    "IPM",
    "LF",
    "MIMIC",
    "Attack",
    "Mixed",
    "NoAttack",
    "NonFinite",
    "Setup",
    "Clones",
    "Decoy",
    "Groups",
    "Heap",
    "MinMax",
    "MinSum",
    "Optimal",
    "SignFlip",
    "State",
    "View",
    "Fang",
    "ROP",
    "SCM",
    "Sparse",
    "Varying",
    "Backdoor",
    "DBA",
    "Replacement",
    "Neurotoxin",
    "attacks",
    "parse",
]
