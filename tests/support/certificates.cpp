#include "support/certificates.hpp"

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>

namespace redislock::test {
namespace {

/// Makes a key and asks for a certificate: the beginnings of two commands.
constexpr const char* newKey = "openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out ";
constexpr const char* newRequest = "openssl req -new -config openssl.cnf ";

/// What `openssl ca` wants to know.
constexpr const char* configuration = R"([ca]
default_ca = own
[own]
database = index
rand_serial = yes
new_certs_dir = .
default_md = sha256
policy = any
unique_subject = no
[any]
commonName = supplied
[req]
distinguished_name = none
prompt = no
[none]
[authority]
basicConstraints = critical, CA:true
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
)";

std::string inQuotes(const std::string& word)
{
    return word.find('\'') == std::string::npos ? "'" + word + "'" : throw std::invalid_argument(word);
}

} // namespace

Authority::Authority() : own_{path("ca.pem"), path("ca.key")}
{
    std::ofstream(path("openssl.cnf")) << configuration;
    run(std::string(newKey) + "ca.key && openssl req -x509 -new -config openssl.cnf -key ca.key -days 9000 " +
        "-subj '/CN=authority' -extensions authority -out ca.pem && : >index");
}

Authority::Authority(Authority& root) : own_{path("ca.pem"), path("ca.key")}, chain_(own_.certFile)
{
    std::ofstream(path("openssl.cnf")) << configuration;
    run(std::string(newKey) + "ca.key && " + newRequest + "-key ca.key -subj '/CN=between' -out ca.csr && : >index");
    root.run("openssl ca -batch -config openssl.cnf -cert ca.pem -keyfile ca.key -notext -extensions authority " +
             ("-days 9000 -in " + inQuotes(path("ca.csr"))) + " -out " + inQuotes(path("ca.pem")));
}

Authority& Authority::trusted()
{
    static Authority authority;
    return authority;
}

Authority& Authority::stranger()
{
    static Authority authority;
    return authority;
}

std::string Authority::caPath()
{
    if (!std::filesystem::exists(path("hashed"))) {
        run("mkdir hashed && cp ca.pem hashed && openssl rehash hashed");
    }
    return path("hashed");
}

Certificate Authority::issue(const CertificateRequest& request)
{
    const auto name = std::to_string(++issued_);
    std::ofstream(path(name + ".ext")) << "keyUsage = digitalSignature\n"
                                       << (request.names.empty() ? "" : "subjectAltName = " + request.names + "\n");
    const auto encrypted = request.password.empty() ? "" : " -aes256 -pass " + inQuotes("pass:" + request.password);
    const auto password = request.password.empty() ? "" : " -passin " + inQuotes("pass:" + request.password);
    run(newKey + name + ".key" + encrypted + " && " + newRequest + "-key " + name + ".key" + password + " -subj " +
        inQuotes("/CN=" + request.commonName) + " -out " + name + ".csr && " +
        "openssl ca -batch -config openssl.cnf -cert ca.pem -keyfile ca.key -notext -extfile " + name + ".ext" +
        " -startdate " + inQuotes(request.from) + " -enddate " + inQuotes(request.until) + " -in " + name +
        ".csr -out " + name + ".pem" + (chain_.empty() ? "" : " && cat " + inQuotes(chain_) + " >>" + name + ".pem"));
    return {path(name + ".pem"), path(name + ".key")};
}

const Certificate& Authority::server()
{
    return server_.certFile.empty() ? server_ = issue() : server_;
}

const Certificate& Authority::client()
{
    return client_.certFile.empty() ? client_ = issue({.names = "", .commonName = "client"}) : client_;
}

void Authority::run(const std::string& commands)
{
    const auto log = folder_.path() / "log";
    const auto begin = testing::detail::sizeOrZero(log);
    testing::detail::ChildProcess shell(
        {testing::detail::findExecutable("sh"), "-c",
         "cd " + inQuotes(folder_.path().string()) + " && " + commands + " && echo done"},
        log);
    shell.awaitEnd(std::chrono::seconds(30));
    if (const auto said = testing::detail::readFile(log, begin); !said.ends_with("done\n")) {
        throw std::runtime_error("openssl failed:\n" + said);
    }
}

testing::RedisServerTls serverTls(testing::RedisServerTls::Clients clients)
{
    auto& authority = Authority::trusted();
    return {.caFile = authority.caFile(),
            .certFile = authority.server().certFile,
            .keyFile = authority.server().keyFile,
            .clients = clients};
}

} // namespace redislock::test
