# Starts the server of moto, with two rules of AWS KMS that moto 5.2.5 lacks: `MessageType: DIGEST` signs the digest as it is
# (moto hashes it once more), and a disabled key is refused. Everything else on the wire is moto's. It ends with its
# standard input, so that it outlives no worker of the tests.
import base64
import json
import os
import sys
import threading

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed
from moto.core.exceptions import JsonRESTError
from moto.kms import utils
from moto.kms.responses import KmsResponse
from moto.server import main

SHA256 = Prehashed(hashes.SHA256())
MARK = b"the rest is a digest:"


def sign_digests(of_key, sign_digest):
    sign = of_key.sign

    def sign_either(self, message, signing_algorithm):
        if not message.startswith(MARK):
            return sign(self, message, signing_algorithm)
        return sign_digest(self.private_key, message[len(MARK) :])

    of_key.sign = sign_either


def mark_digest(self):
    body = json.loads(self.body)
    if body.get("MessageType") == "DIGEST":
        digest = base64.b64decode(body["Message"])
        if len(digest) != 32:
            raise JsonRESTError("ValidationException", "Digest is invalid length for algorithm")
        body["Message"] = base64.b64encode(MARK + digest).decode()
        self.body = json.dumps(body)
    return sign_marked(self)


def refuse_disabled(action):
    answer = getattr(KmsResponse, action)

    def answer_enabled(self):
        key = self.kms_backend.describe_key(json.loads(self.body)["KeyId"])
        if key.key_state == "Disabled":
            raise JsonRESTError("DisabledException", f"{key.arn} is disabled.")
        return answer(self)

    setattr(KmsResponse, action, answer_enabled)


sign_digests(utils.ECDSAPrivateKey, lambda key, digest: key.sign(digest, ec.ECDSA(SHA256)))
sign_digests(utils.RSAPrivateKey, lambda key, digest: key.sign(digest, padding.PKCS1v15(), SHA256))
sign_marked = KmsResponse.sign
KmsResponse.sign = mark_digest
for action in ("sign", "generate_mac", "generate_data_key", "decrypt"):
    refuse_disabled(action)


def end_with_parent():
    sys.stdin.read()
    os._exit(0)


threading.Thread(target=end_with_parent, daemon=True).start()
main(sys.argv[1:])
