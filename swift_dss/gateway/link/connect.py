"""botocore's client, as the configuration of the gateway wants it.

boto3 tries each request once: the callers of ``S3Client`` know what may be
repeated. A body counts as traffic of the link from when it is read to be sent,
and not while it is read for its digest.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict

import botocore.config
import botocore.exceptions
import botocore.session

from swift_dss.core.config import GatewayConf
from swift_dss.core.errors import BadConfig
from swift_dss.gateway.link.direct import direct
from swift_dss.gateway.link.wan import Sent

#: Gives what has boto3's verbs, by configuration, access key, secret key
#: and most connections.
Connect = Callable[[GatewayConf, str, str, int], Any]


def connect_to(conf: GatewayConf, access_key: str, secret_key: str,
               connections: int) -> Any:
    """boto3's client of an endpoint, with :class:`Direct` before it where
    that knows the way to the bucket.

    :param connections: most requests that run at once
    :raises BadConfig: boto3 can make no request of these options
    """
    try:
        return _connected(conf, access_key, secret_key, connections)
    except (botocore.exceptions.BotoCoreError, ValueError) as err:
        raise BadConfig('[gateway] bucket, region or url: %s'
                        % ' '.join(str(err).split())) from err


def _connected(conf: GatewayConf, access_key: str, secret_key: str,
               connections: int) -> Any:
    options: Dict[str, Any] = {
        'connect_timeout': conf.connect_timeout_seconds,
        'read_timeout': conf.read_timeout_seconds,
        'retries': {'total_max_attempts': 1, 'mode': 'standard'},
        'signature_version': 's3v4',
        's3': {'addressing_style': conf.addressing_style},
        'max_pool_connections': connections}
    if hasattr(botocore.config.Config(), 'request_checksum_calculation'):
        # Since 1.36 boto3 sends and wants checksums that break ranged
        # reads on servers that do not know them.
        options['request_checksum_calculation'] = conf.checksums
        options['response_checksum_validation'] = conf.checksums
    session = botocore.session.Session()
    session.register_component('data_loader', _models())
    client = session.create_client(
        's3', region_name=conf.region, endpoint_url=conf.url or None,
        verify=conf.ca_bundle or True, aws_access_key_id=access_key,
        aws_secret_access_key=secret_key,
        config=botocore.config.Config(**options))
    client.meta.events.register('before-send.s3', _sending)
    client.meta.events.register_first('before-send.s3.HeadBucket', _lost)
    return direct(client, conf, access_key, secret_key, connections)


@functools.cache
def _models() -> Any:
    """botocore's descriptions of S3 and its regions, read once a process:
    that is nearly all of the time that a client takes to make."""
    return botocore.session.Session().get_component('data_loader')


class Redirected(OSError):
    """The server names another address, and no region to ask."""


def _lost(**_: Any) -> None:
    """boto3 asks for the region of a bucket after a redirect that names none,
    and asks again after the redirect of that question, a thousand times. No
    call of ours is HeadBucket."""
    raise Redirected()


def _sending(request: Any, **_: Any) -> None:
    """Count the bytes read of a body from now on as traffic of the link."""
    if isinstance(request.body, Sent):
        request.body.sending = True
        # boto3 wants to be asked for what is like a file: one more round
        # trip, or a second where the server does not know how.
        request.headers.pop('Expect', None)
