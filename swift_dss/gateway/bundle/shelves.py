"""The places that know this node's bundles, and those that read them."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Iterable, Sequence

from swift_dss.core.errors import DssError
from swift_dss.core.version import VersionId
from swift_dss.gateway.bundle.book import Book
from swift_dss.gateway.form.encrypt import KeyFile
from swift_dss.gateway.link.client import S3Client


@dataclass(frozen=True)
class Shelves:
    """The book, the bucket, and the keys that bundles are sealed with."""

    book: Book
    client: S3Client
    keys: KeyFile


class MemberRows(abc.ABC):
    """The queue's rows of a bundle's members. They change in any state of
    their versions.
    """

    @abc.abstractmethod
    def settle(self, versions: Iterable[VersionId]) -> None:
        """S3 has these in a bundle, and their records say so."""

    @abc.abstractmethod
    def put_off(self, version: VersionId, seconds: float,
                err: DssError) -> None:
        """A member could not be packed: park it again then."""

    @abc.abstractmethod
    def single_out(self, versions: Sequence[VersionId]) -> None:
        """These leave the book: a worker sends each, now."""
