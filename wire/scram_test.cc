#include "wire/scram.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

namespace sluice {
namespace {

std::string Hmac(std::string_view key, std::string_view text) {
  std::string out(32, '\0');
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(),
       reinterpret_cast<unsigned char*>(out.data()), nullptr);
  return out;
}

// A client written from RFC 5802 alone.
struct Client {
  std::string password, gs2 = "n,,", binding_data = "";
  std::string bare = "n=,r=fyko+d2lbbFgONRv9qkxdawL";

  std::string First() const { return gs2 + bare; }
  std::string Final(const std::string& server_first, std::string* server_signature) const {
    std::string nonce = server_first.substr(2, server_first.find(",s=") - 2);
    size_t s = server_first.find(",s=") + 3, i = server_first.find(",i=");
    std::string salt = *Base64Decode(server_first.substr(s, i - s));
    std::string salted(32, '\0');
    PKCS5_PBKDF2_HMAC(password.data(), static_cast<int>(password.size()),
                      reinterpret_cast<const unsigned char*>(salt.data()),
                      static_cast<int>(salt.size()), std::stoi(server_first.substr(i + 3)),
                      EVP_sha256(), 32, reinterpret_cast<unsigned char*>(salted.data()));
    std::string client_key = Hmac(salted, "Client Key"), stored(32, '\0');
    SHA256(reinterpret_cast<const unsigned char*>(client_key.data()), 32,
           reinterpret_cast<unsigned char*>(stored.data()));
    std::string without_proof = "c=" + Base64Encode(gs2 + binding_data) + ",r=" + nonce;
    std::string message = bare + "," + server_first + "," + without_proof;
    std::string proof = Hmac(stored, message);
    for (int at = 0; at < 32; at++) proof[at] = static_cast<char>(proof[at] ^ client_key[at]);
    *server_signature = "v=" + Base64Encode(Hmac(Hmac(salted, "Server Key"), message));
    return without_proof + ",p=" + Base64Encode(proof);
  }
};

SqlState StateOf(const std::function<void()>& run) {
  try {
    run();
  } catch (const QueryError& e) {
    return e.error.state;
  }
  return {};
}

TEST(Scram, VerifierAsPostgresWritesIt) {
  // What a Postgres 15 kept after CREATE ROLE … PASSWORD 'sécret'.
  std::string text =
      "SCRAM-SHA-256$4096:de3olkz2oR99bVXrXZIoaQ==$D8iB0+h0Zr/JHzRzF2yv4qzkhvQIu/"
      "ytwMVbfCA+kIk=:8BK8xUjj/xC6j5m0IB4KV9YFg6XRlnTnTTC8u2FKSE8=";
  auto parsed = ParseScramVerifier(text);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(FormatScramVerifier(MakeScramVerifier("sécret", parsed->salt)), text);
  EXPECT_FALSE(ParseScramVerifier("md5abc"));
  EXPECT_FALSE(ParseScramVerifier("SCRAM-SHA-256$0:MDE=$MDE=:MDE="));
  EXPECT_FALSE(ParseScramVerifier(text.substr(0, text.size() - 4)));
}

TEST(Scram, RightAndWrongPassword) {
  for (bool right : {true, false}) {
    ScramServer server(MakeScramVerifier("pencil"), false, kScramSha256, "", false);
    Client client{.password = right ? "pencil" : "Pencil"};
    std::string signature;
    std::string final_message = client.Final(server.ServerFirst(client.First()), &signature);
    auto answer = server.ServerFinal(final_message);
    ASSERT_EQ(answer.has_value(), right);
    if (right) EXPECT_EQ(*answer, signature);
  }
}

TEST(Scram, UnknownUserFailsAlike) {
  ScramVerifier mock = MakeMockVerifier("nobody", "s3");
  EXPECT_EQ(mock.salt, MakeMockVerifier("nobody", "s3").salt);
  EXPECT_NE(mock.salt, MakeMockVerifier("somebody", "s3").salt);
  ScramServer server(mock, true, kScramSha256, "", false);
  Client client{.password = ""};
  std::string signature;
  EXPECT_FALSE(server.ServerFinal(client.Final(server.ServerFirst(client.First()), &signature)));
}

TEST(Scram, PasswordIsPrepared) {
  // U+00AA is "a" and U+00AD nothing to SASLprep (RFC 4013, section 3).
  ScramServer server(MakeScramVerifier("I\u00ADX\u00AA"), false, kScramSha256, "", false);
  Client client{.password = "IXa"};
  std::string signature;
  EXPECT_TRUE(server.ServerFinal(client.Final(server.ServerFirst(client.First()), &signature)));
}

TEST(Scram, ChannelBinding) {
  for (const char* hash : {"certificate", "another's"}) {
    ScramServer server(MakeScramVerifier("x"), false, kScramSha256Plus, "certificate", true);
    Client client{.password = "x", .gs2 = "p=tls-server-end-point,,", .binding_data = hash};
    std::string signature;
    std::string final_message = client.Final(server.ServerFirst(client.First()), &signature);
    if (std::string(hash) == "certificate")
      EXPECT_TRUE(server.ServerFinal(final_message));
    else
      EXPECT_EQ(StateOf([&] { server.ServerFinal(final_message); }),
                sqlstate::kInvalidAuthorizationSpecification);
  }
  // Someone in the middle has taken -PLUS out of the list.
  ScramServer server(MakeScramVerifier("x"), false, kScramSha256, "certificate", true);
  EXPECT_EQ(StateOf([&] { server.ServerFirst("y,,n=,r=abc"); }),
            sqlstate::kInvalidAuthorizationSpecification);
}

TEST(Scram, NonsenseIsAProtocolViolation) {
  for (const char* first : {"", "n", "n,", "n,,", "n,,n=", "n,,n=,r=", "x,,n=,r=abc", "n,,r=abc",
                            "p=tls-server-end-point,,n=,r=abc", "n,,n=,r=a\x01"}) {
    ScramServer server(MakeScramVerifier("x"), false, kScramSha256, "", false);
    EXPECT_EQ(StateOf([&] { server.ServerFirst(first); }), sqlstate::kProtocolViolation) << first;
  }
  for (const char* last : {"", "c=", "c=biws", "c=biws,r=abc",
                           "c=biws,r=abc,p=", "c=biws,r=abc,p=MDE=", "p=MDE=", "c=biws,r=abc,x"}) {
    ScramServer server(MakeScramVerifier("x"), false, kScramSha256, "", false);
    server.ServerFirst("n,,n=,r=abc");
    EXPECT_EQ(StateOf([&] { server.ServerFinal(last); }), sqlstate::kProtocolViolation) << last;
  }
  EXPECT_EQ(StateOf([] { ScramServer(MakeScramVerifier("x"), false, "OTHER", "", false); }),
            sqlstate::kProtocolViolation);
}

}  // namespace
}  // namespace sluice
