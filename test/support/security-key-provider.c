/*
 * A security key in software, as a library that OpenSSH loads (sk-api.h, SSH_SK_PROVIDER). Its key
 * handles contain the private keys, and it signs with them. It attests each new key with the
 * attestation key in the folder SVC_TEST_SK. It is for the tests alone.
 *
 * Environment: SVC_TEST_SK is a folder with attestation.pem (private key), attestation.der
 * (certificate) and aaguid (16 bytes). If SVC_TEST_SK_FLAGS is set, each signature has these flags
 * (a number) in place of the flags that say what the user did.
 */
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ECDSA 0
#define ED25519 1
#define USER_PRESENT 0x01
#define USER_VERIFIED 0x04
#define RESIDENT 0x20
#define FLAG_CREDENTIAL 0x40
#define FLAG_EXTENSIONS 0x80
#define GENERAL_ERROR -1
#define UNSUPPORTED -2
#define PIN_REQUIRED -3
#define PIN "123456"
#define SEED 32

struct sk_enroll_response {
#if SK_API_VERSION >= 0x000a0000
  uint8_t flags;
#endif
  uint8_t *public_key;
  size_t public_key_len;
  uint8_t *key_handle;
  size_t key_handle_len;
  uint8_t *signature;
  size_t signature_len;
  uint8_t *attestation_cert;
  size_t attestation_cert_len;
  uint8_t *authdata;
  size_t authdata_len;
};

struct sk_sign_response {
  uint8_t flags;
  uint32_t counter;
  uint8_t *sig_r;
  size_t sig_r_len;
  uint8_t *sig_s;
  size_t sig_s_len;
};

struct bytes {
  uint8_t data[4096];
  size_t length;
};

static void put(struct bytes *to, const void *data, size_t length) {
  if (to->length + length > sizeof(to->data)) abort();
  memcpy(to->data + to->length, data, length);
  to->length += length;
}

static void put_byte(struct bytes *to, int byte) {
  uint8_t value = (uint8_t)byte;
  put(to, &value, 1);
}

static void put_number(struct bytes *to, uint32_t value, int octets) {
  while (octets-- > 0) put_byte(to, (int)(value >> (8 * octets)) & 0xff);
}

/* A CBOR byte string of 32 to 65535 bytes. */
static void put_cbor_bytes(struct bytes *to, const uint8_t *data, size_t length) {
  put_byte(to, length < 256 ? 0x58 : 0x59);
  put_number(to, (uint32_t)length, length < 256 ? 1 : 2);
  put(to, data, length);
}

static uint8_t *copy(const uint8_t *data, size_t length) {
  uint8_t *owned = calloc(1, length + 1);
  if (owned != NULL) memcpy(owned, data, length);
  return owned;
}

static FILE *open_file(const char *name) {
  char path[4096];
  const char *folder = getenv("SVC_TEST_SK");
  if (folder == NULL) return NULL;
  snprintf(path, sizeof(path), "%s/%s", folder, name);
  return fopen(path, "rb");
}

static int read_file(const char *name, struct bytes *into) {
  FILE *file = open_file(name);
  if (file == NULL) return -1;
  into->length = fread(into->data, 1, sizeof(into->data), file);
  fclose(file);
  return 0;
}

/* The key of a handle: the handle is the private key itself. */
static EVP_PKEY *key_of(uint32_t alg, const uint8_t *seed) {
  if (alg == ED25519) return EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, SEED);
  EC_KEY *ec = EC_KEY_new_by_curve_name(NID_X9_62_prime256v1);
  const EC_GROUP *group = EC_KEY_get0_group(ec);
  EC_POINT *point = EC_POINT_new(group);
  BIGNUM *scalar = BN_bin2bn(seed, SEED, NULL);
  EVP_PKEY *key = EVP_PKEY_new();
  if (EC_POINT_mul(group, point, scalar, NULL, NULL, NULL) != 1 || EC_KEY_set_private_key(ec, scalar) != 1 ||
      EC_KEY_set_public_key(ec, point) != 1 || EVP_PKEY_assign_EC_KEY(key, ec) != 1) abort();
  EC_POINT_free(point);
  BN_free(scalar);
  return key;
}

/* The public key as OpenSSH takes it: 32 bytes, or an uncompressed point. */
static void public_key_of(uint32_t alg, EVP_PKEY *key, struct bytes *into) {
  into->length = sizeof(into->data);
  if (alg == ED25519) {
    if (EVP_PKEY_get_raw_public_key(key, into->data, &into->length) != 1) abort();
    return;
  }
  const EC_KEY *ec = EVP_PKEY_get0_EC_KEY(key);
  into->length = EC_POINT_point2oct(EC_KEY_get0_group(ec), EC_KEY_get0_public_key(ec), POINT_CONVERSION_UNCOMPRESSED,
                                    into->data, sizeof(into->data), NULL);
}

static void put_cose_key(struct bytes *to, uint32_t alg, const struct bytes *public_key) {
  static const uint8_t ec2[] = {0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21};
  static const uint8_t okp[] = {0xa4, 0x01, 0x01, 0x03, 0x27, 0x20, 0x06, 0x21};
  if (alg == ED25519) {
    put(to, okp, sizeof(okp));
    put_cbor_bytes(to, public_key->data, 32);
    return;
  }
  put(to, ec2, sizeof(ec2));
  put_cbor_bytes(to, public_key->data + 1, 32);
  put_byte(to, 0x22);
  put_cbor_bytes(to, public_key->data + 33, 32);
}

static void put_application(struct bytes *to, const char *application) {
  uint8_t digest[SHA256_DIGEST_LENGTH];
  SHA256((const uint8_t *)application, strlen(application), digest);
  put(to, digest, sizeof(digest));
}

/* Signs bytes with a key; returns the length of the signature. */
static size_t sign_bytes(EVP_PKEY *key, const EVP_MD *digest, const struct bytes *signed_data, uint8_t *signature, size_t room) {
  EVP_MD_CTX *context = EVP_MD_CTX_new();
  size_t length = room;
  if (EVP_DigestSignInit(context, NULL, digest, NULL, key) != 1 ||
      EVP_DigestSign(context, signature, &length, signed_data->data, signed_data->length) != 1) abort();
  EVP_MD_CTX_free(context);
  return length;
}

/* The attestation of WebAuthn 8.2: authenticator data, then the hash of the challenge. */
static int attest(const struct bytes *authenticator_data, const uint8_t *challenge, size_t challenge_len,
                  struct sk_enroll_response *response) {
  uint8_t signature[256], digest[SHA256_DIGEST_LENGTH];
  struct bytes signed_data = *authenticator_data, wrapped = {.length = 0}, certificate = {.length = 0};
  FILE *file = open_file("attestation.pem");
  EVP_PKEY *key = file == NULL ? NULL : PEM_read_PrivateKey(file, NULL, NULL, NULL);
  if (key == NULL || read_file("attestation.der", &certificate) != 0) return -1;
  fclose(file);
  SHA256(challenge, challenge_len, digest);
  put(&signed_data, digest, sizeof(digest));
  response->signature_len = sign_bytes(key, EVP_sha256(), &signed_data, signature, sizeof(signature));
  response->signature = copy(signature, response->signature_len);
  EVP_PKEY_free(key);
  response->attestation_cert = copy(certificate.data, certificate.length);
  response->attestation_cert_len = certificate.length;
  put_cbor_bytes(&wrapped, authenticator_data->data, authenticator_data->length);
  response->authdata = copy(wrapped.data, wrapped.length);
  response->authdata_len = wrapped.length;
  return 0;
}

static void build_authenticator_data(uint32_t alg, const char *application, uint8_t flags, const struct bytes *aaguid,
                                     const uint8_t *handle, const struct bytes *public_key, struct bytes *into) {
  int protection = (flags & USER_VERIFIED) ? 3 : (flags & RESIDENT) ? 2 : 0;
  int bits = USER_PRESENT | FLAG_CREDENTIAL | (flags & USER_VERIFIED) | (protection ? FLAG_EXTENSIONS : 0);
  put_application(into, application);
  put_byte(into, bits);
  put_number(into, 1, 4); /* the counter */
  put(into, aaguid->data, 16);
  put_number(into, SEED, 2);
  put(into, handle, SEED);
  put_cose_key(into, alg, public_key);
  if (protection == 0) return;
  put_byte(into, 0xa1);
  put_byte(into, 0x60 + 11);
  put(into, "credProtect", 11);
  put_byte(into, protection);
}

uint32_t sk_api_version(void) { return SK_API_VERSION; }

int sk_enroll(uint32_t alg, const uint8_t *challenge, size_t challenge_len, const char *application, uint8_t flags,
              const char *pin, void *options, struct sk_enroll_response **enrolled) {
  struct bytes public_key = {.length = 0}, aaguid = {.length = 0}, data = {.length = 0};
  uint8_t seed[SEED];
  (void)options;
  if (alg != ECDSA && alg != ED25519) return UNSUPPORTED;
  if ((flags & USER_VERIFIED) && (pin == NULL || strcmp(pin, PIN) != 0)) return PIN_REQUIRED;
  FILE *random = fopen("/dev/urandom", "rb");
  if (random == NULL || fread(seed, 1, SEED, random) != SEED || read_file("aaguid", &aaguid) != 0) return GENERAL_ERROR;
  fclose(random);
  seed[0] &= 0x7f; /* a scalar below the order of P-256 */
  EVP_PKEY *key = key_of(alg, seed);
  public_key_of(alg, key, &public_key);
  EVP_PKEY_free(key);
  build_authenticator_data(alg, application, flags, &aaguid, seed, &public_key, &data);

  struct sk_enroll_response *response = calloc(1, sizeof(*response));
  if (attest(&data, challenge, challenge_len, response) != 0) return GENERAL_ERROR;
  response->public_key = copy(public_key.data, public_key.length);
  response->public_key_len = public_key.length;
  response->key_handle = copy(seed, SEED);
  response->key_handle_len = SEED;
#if SK_API_VERSION >= 0x000a0000
  response->flags = flags;
#endif
  *enrolled = response;
  return 0;
}

static void put_ecdsa(const uint8_t *der, size_t length, struct sk_sign_response *response) {
  ECDSA_SIG *signature = d2i_ECDSA_SIG(NULL, &der, (long)length);
  const BIGNUM *r = ECDSA_SIG_get0_r(signature), *s = ECDSA_SIG_get0_s(signature);
  response->sig_r_len = (size_t)BN_num_bytes(r);
  response->sig_s_len = (size_t)BN_num_bytes(s);
  response->sig_r = calloc(1, response->sig_r_len);
  response->sig_s = calloc(1, response->sig_s_len);
  BN_bn2bin(r, response->sig_r);
  BN_bn2bin(s, response->sig_s);
  ECDSA_SIG_free(signature);
}

int sk_sign(uint32_t alg, const uint8_t *message, size_t message_len, const char *application, const uint8_t *key_handle,
            size_t key_handle_len, uint8_t flags, const char *pin, void *options, struct sk_sign_response **signed_by) {
  uint8_t signature[256], digest[SHA256_DIGEST_LENGTH];
  struct bytes signed_data = {.length = 0};
  const char *forced = getenv("SVC_TEST_SK_FLAGS");
  (void)options;
  if (key_handle_len != SEED) return GENERAL_ERROR;
  if ((flags & USER_VERIFIED) && (pin == NULL || strcmp(pin, PIN) != 0)) return PIN_REQUIRED;
  struct sk_sign_response *response = calloc(1, sizeof(*response));
  response->flags = flags & (USER_PRESENT | USER_VERIFIED);
  if (forced != NULL) response->flags = (uint8_t)atoi(forced);
  response->counter = 2;

  put_application(&signed_data, application);
  put_byte(&signed_data, response->flags);
  put_number(&signed_data, response->counter, 4);
  SHA256(message, message_len, digest);
  put(&signed_data, digest, sizeof(digest));
  EVP_PKEY *key = key_of(alg, key_handle);
  size_t length = sign_bytes(key, alg == ED25519 ? NULL : EVP_sha256(), &signed_data, signature, sizeof(signature));
  EVP_PKEY_free(key);
  if (alg == ED25519) {
    response->sig_r = copy(signature, length);
    response->sig_r_len = length;
  } else {
    put_ecdsa(signature, length, response);
  }
  *signed_by = response;
  return 0;
}

int sk_load_resident_keys(const char *pin, void *options, void *keys, size_t *count) {
  (void)pin, (void)options, (void)keys, (void)count;
  return UNSUPPORTED;
}
