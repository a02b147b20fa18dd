// The one source file that includes OpenSSL. TLS 1.2 and 1.3 by OpenSSL 3.
#include "link/tls/tls_session.hpp"

#include "redislock/error.hpp"
#include "values/printable.hpp"

#if REDISLOCK_WITH_TLS

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

namespace redislock::detail {

namespace {

constexpr std::size_t shownText = 200;
constexpr std::size_t shownNames = 5;

template <class Value, void (*free)(Value*)>
struct FreeBy {
    void operator()(Value* value) const noexcept { free(value); }
};
template <class Value, void (*free)(Value*)>
using OpensslPointer = std::unique_ptr<Value, FreeBy<Value, free>>;

void freeText(BIO* bio)
{
    ::BIO_free(bio);
}

/// What @p print writes, as printable text.
template <class Print>
std::string printed(Print print)
{
    const OpensslPointer<BIO, freeText> text(::BIO_new(::BIO_s_mem()));
    if (text == nullptr) {
        throw std::bad_alloc();
    }
    print(text.get());
    char* begin = nullptr;
    const auto size = BIO_get_mem_data(text.get(), &begin);
    return printable({begin, static_cast<std::size_t>(size)}, shownText);
}

std::string textOfName(const X509_NAME* name)
{
    return printed([name](BIO* out) { ::X509_NAME_print_ex(out, name, 0, XN_FLAG_ONELINE & ~ASN1_STRFLGS_ESC_MSB); });
}

std::string textOfTime(const ASN1_TIME* time)
{
    return printed([time](BIO* out) { ::ASN1_TIME_print(out, time); });
}

/// OpenSSL's reason for an error, or the system's.
std::string reasonText(unsigned long error)
{
    if (ERR_SYSTEM_ERROR(error)) {
        return std::strerror(ERR_GET_REASON(error));
    }
    const char* reason = ::ERR_reason_error_string(error);
    return reason != nullptr ? printable(reason, shownText) : "unknown error";
}

/// Empties the thread's queue of errors. @throws std::bad_alloc if memory ran out, though what was called may say
/// nothing of it.
void takeErrors()
{
    bool hasRunOut = false;
    while (const unsigned long error = ::ERR_get_error()) {
        hasRunOut = hasRunOut || ERR_GET_REASON(error) == ERR_R_MALLOC_FAILURE;
    }
    if (hasRunOut) {
        throw std::bad_alloc();
    }
}

/// Lets OpenSSL read the authorities to the end: if it had no memory for that later, it would never use them again.
/// @return whether all their keys could be read
bool readAuthorities(SSL_CTX* context)
{
    bool hasAllKeys = true;
    const auto* all = ::X509_STORE_get0_objects(::SSL_CTX_get_cert_store(context));
    for (int i = 0; i < sk_X509_OBJECT_num(all); ++i) {
        if (X509* certificate = ::X509_OBJECT_get0_X509(sk_X509_OBJECT_value(all, i))) {
            ::X509_check_purpose(certificate, -1, 0);
            hasAllKeys = hasAllKeys && ::X509_get0_pubkey(certificate) != nullptr;
        }
    }
    return hasAllKeys;
}

bool isAddress(const std::string& host)
{
    in6_addr address{};
    return ::inet_pton(AF_INET, host.c_str(), &address) == 1 || ::inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

/// The names that a certificate is for, as a list for a message.
std::string namesIn(X509* certificate)
{
    const auto free = [](GENERAL_NAMES* names) { ::GENERAL_NAMES_free(names); };
    const std::unique_ptr<GENERAL_NAMES, decltype(free)> names(
        static_cast<GENERAL_NAMES*>(::X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)), free);
    std::string list;
    std::size_t count = 0;
    for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
        const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
        if (name->type != GEN_DNS && name->type != GEN_IPADD) {
            continue;
        }
        if (++count > shownNames) {
            return list + ", ...";
        }
        const ASN1_STRING* bytes = name->type == GEN_DNS ? name->d.dNSName : name->d.iPAddress;
        const auto* data = ::ASN1_STRING_get0_data(bytes);
        const auto size = static_cast<std::size_t>(::ASN1_STRING_length(bytes));
        list += list.empty() ? "" : ", ";
        if (name->type == GEN_DNS) {
            list += printable({reinterpret_cast<const char*>(data), size});
            continue;
        }
        std::array<char, INET6_ADDRSTRLEN> text{};
        if (size == 4 || size == 16) {
            ::inet_ntop(size == 4 ? AF_INET : AF_INET6, data, text.data(), text.size());
        }
        list += text.data();
    }
    return list.empty() ? "no name" : list;
}

/// What is wrong with a certificate in a server's chain.
TlsFailure rejection(X509_STORE_CTX* store, const std::string& expected)
{
    const int error = ::X509_STORE_CTX_get_error(store);
    X509* certificate = ::X509_STORE_CTX_get_current_cert(store);
    const std::string whose =
        certificate != nullptr ? " (" + textOfName(::X509_get_subject_name(certificate)) + ')' : std::string();
    switch (error) {
    case X509_V_ERR_OUT_OF_MEM:
        return {Cause::connectFailed, "out of memory"};
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        return {Cause::certificateNameMismatch, '"' + printable(expected) + "\" was expected, the certificate is for " +
                                                    namesIn(::X509_STORE_CTX_get0_cert(store))};
    case X509_V_ERR_CERT_HAS_EXPIRED:
        return {Cause::certificateExpired, "expired " + textOfTime(::X509_get0_notAfter(certificate)) + whose};
    case X509_V_ERR_CERT_NOT_YET_VALID:
        return {Cause::certificateExpired,
                "not valid before " + textOfTime(::X509_get0_notBefore(certificate)) + whose};
    default:
        return {Cause::certificateNotTrusted, ::X509_verify_cert_error_string(error) + whose};
    }
}

/// Whether the alert is what a server sends that refuses a client's certificate, or misses one.
bool isAboutCertificate(int alert) noexcept
{
    switch (alert) {
    case SSL_AD_HANDSHAKE_FAILURE:
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_EXPIRED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_UNKNOWN_CA:
    case SSL_AD_ACCESS_DENIED:
    case SSL_AD_DECRYPT_ERROR:
    case TLS13_AD_CERTIFICATE_REQUIRED:
        return true;
    default:
        return false;
    }
}

/// Makes the session send the name that it looks for.
bool sendName(SSL* session, const std::string& name)
{
    // the macro for it casts in the old style
    return ::SSL_ctrl(session, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                      const_cast<char*>(name.c_str())) == 1;
}

/// Why a file cannot be opened; empty: it can.
std::string unreadable(const std::string& path, bool isFolder)
{
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | (isFolder ? O_DIRECTORY : 0));
    if (file < 0) {
        return std::strerror(errno);
    }
    struct stat facts = {};
    const bool isRegular = ::fstat(file, &facts) == 0 && S_ISREG(facts.st_mode);
    ::close(file);
    return isFolder || isRegular ? "" : "it is not a file";
}

} // namespace

/// What OpenSSL calls.
struct TlsCallbacks {
    struct KeyPassword {
        const std::string& text;
        bool wasWanted = false;
    };

    static int keyPassword(char* buffer, int size, int /*writing*/, void* of)
    {
        auto& password = *static_cast<KeyPassword*>(of);
        password.wasWanted = true;
        if (password.text.empty() || password.text.size() > static_cast<std::size_t>(size)) {
            return -1;
        }
        std::memcpy(buffer, password.text.data(), password.text.size());
        return static_cast<int>(password.text.size());
    }

    /// A certificate of the server has been judged.
    static int verified(int isGood, X509_STORE_CTX* store)
    {
        auto* session = static_cast<SSL*>(::X509_STORE_CTX_get_ex_data(store, ::SSL_get_ex_data_X509_STORE_CTX_idx()));
        auto& self = *static_cast<TlsSession*>(SSL_get_app_data(session));
        if (isGood == 0 && !self.failure_) {
            try {
                self.failure_ = rejection(store, self.name_);
            } catch (const std::bad_alloc&) {
                self.failure_.emplace();
            }
        }
        return isGood;
    }

    /// The server asks for a certificate.
    static int asked(SSL* /*session*/, void* of)
    {
        static_cast<TlsSession*>(of)->wasAsked_ = true;
        return 1;
    }
};

void TlsContext::Free::operator()(ssl_ctx_st* context) const noexcept
{
    ::SSL_CTX_free(context);
}

TlsContext::TlsContext(const Tls& tls)
    : context_(::SSL_CTX_new(::TLS_client_method())),
      verify_(tls.verify),
      name_(tls.serverName),
      hasCertificate_(!tls.certFile.empty())
{
    if (context_ == nullptr) {
        ::ERR_clear_error();
        throw std::bad_alloc();
    }
    const int least = tls.minVersion == Tls::Version::v1_3 ? TLS1_3_VERSION : TLS1_2_VERSION;
    ::SSL_CTX_set_min_proto_version(context_.get(), least);
    ::SSL_CTX_set_options(context_.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    ::SSL_CTX_set_mode(context_.get(), SSL_MODE_RELEASE_BUFFERS); // 33 KiB a connection
    ::SSL_CTX_set_session_cache_mode(context_.get(), SSL_SESS_CACHE_OFF);
    ::SSL_CTX_set_verify(context_.get(), verify_ == Tls::Verify::none ? SSL_VERIFY_NONE : SSL_VERIFY_PEER,
                         &TlsCallbacks::verified);
}

TlsContext::Loaded TlsContext::load(const Tls& tls)
{
    const auto trouble = [](const char* field, const std::string& path, const std::string& reason, bool isPair) {
        return Loaded{nullptr, std::string("tls.") + field + " is \"" + printable(path, shownText) + "\": " + reason,
                      isPair};
    };
    const std::shared_ptr<TlsContext> made(new TlsContext(tls));
    SSL_CTX* context = made->context_.get();
    TlsCallbacks::KeyPassword password{tls.keyPassword};
    ::SSL_CTX_set_default_passwd_cb(context, &TlsCallbacks::keyPassword);
    ::SSL_CTX_set_default_passwd_cb_userdata(context, &password);

    struct Step {
        const char* field;
        const std::string& path;
        int (*read)(SSL_CTX*, const char*);
    };
    const Step steps[] = {
        {"caFile", tls.caFile, [](SSL_CTX* c, const char* path) { return ::SSL_CTX_load_verify_file(c, path); }},
        {"caPath", tls.caPath, [](SSL_CTX* c, const char* path) { return ::SSL_CTX_load_verify_dir(c, path); }},
        {"certFile", tls.certFile, &::SSL_CTX_use_certificate_chain_file},
        {"keyFile", tls.keyFile,
         [](SSL_CTX* c, const char* path) { return ::SSL_CTX_use_PrivateKey_file(c, path, SSL_FILETYPE_PEM); }},
    };
    ::ERR_clear_error();
    for (const Step& step : steps) {
        if (step.path.empty()) {
            continue;
        }
        if (const auto why = unreadable(step.path, &step.path == &tls.caPath); !why.empty()) {
            return trouble(step.field, step.path, why, false);
        }
        if (step.read(context, step.path.c_str()) == 1) {
            continue;
        }
        const auto isMismatch = ERR_GET_LIB(::ERR_peek_last_error()) == ERR_LIB_X509 &&
                                ERR_GET_REASON(::ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH;
        const auto reason = reasonText(::ERR_peek_error());
        takeErrors();
        if (isMismatch) {
            return trouble(step.field, step.path, "it is not the key of the certificate in tls.certFile", true);
        }
        const bool isLocked = password.wasWanted && &step.path == &tls.keyFile;
        return trouble(step.field, step.path,
                       !isLocked                 ? reason
                       : tls.keyPassword.empty() ? "it is encrypted, and tls.keyPassword is empty"
                                                 : "tls.keyPassword does not decrypt it",
                       false);
    }
    ::SSL_CTX_set_default_passwd_cb_userdata(context, nullptr);
    ::SSL_CTX_set_default_passwd_cb(context, nullptr);
    if (tls.caFile.empty() && tls.caPath.empty()) {
        ::SSL_CTX_set_default_verify_paths(context);
    }
    const bool hasAllKeys = readAuthorities(context);
    takeErrors();
    if (!hasAllKeys) {
        return trouble("caFile", tls.caFile, "the key of a certificate in it cannot be read", false);
    }
    return {made, {}, false};
}

std::unique_ptr<TlsSession> TlsContext::session(const std::string& host) const
{
    return std::make_unique<TlsSession>(*this, host);
}

void TlsSession::Free::operator()(ssl_st* session) const noexcept
{
    ::SSL_free(session);
}

TlsSession::TlsSession(const TlsContext& context, const std::string& host)
    : session_(::SSL_new(context.context_.get())),
      in_(::BIO_new(::BIO_s_mem())),
      out_(::BIO_new(::BIO_s_mem())),
      hasCertificate_(context.hasCertificate_)
{
    bool isGood = session_ != nullptr && in_ != nullptr && out_ != nullptr;
    if (isGood) {
        BIO_set_mem_eof_return(in_, -1); // an empty buffer is no end
        ::SSL_set_bio(session_.get(), in_, out_);
    } else {
        ::BIO_free(in_);
        ::BIO_free(out_);
    }
    SSL* ssl = session_.get();
    isGood = isGood && SSL_set_app_data(ssl, this) == 1;
    std::string name = context.name_.empty() ? host.substr(0, host.find('%')) : context.name_;
    const bool isByAddress = isAddress(name);
    if (!isByAddress && name.ends_with('.')) {
        name.pop_back();
    }
    isGood = isGood && (isByAddress || sendName(ssl, name));
    if (isGood && context.verify_ == Tls::Verify::full) {
        name_ = std::move(name);
        X509_VERIFY_PARAM* rules = ::SSL_get0_param(ssl);
        ::X509_VERIFY_PARAM_set_hostflags(rules,
                                          X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
        isGood = (isByAddress ? ::X509_VERIFY_PARAM_set1_ip_asc(rules, name_.c_str())
                              : ::X509_VERIFY_PARAM_set1_host(rules, name_.c_str(), name_.size())) == 1;
    }
    if (!isGood) {
        ::ERR_clear_error();
        throw std::bad_alloc();
    }
    ::SSL_set_cert_cb(ssl, &TlsCallbacks::asked, this);
    ::SSL_set_connect_state(ssl);
}

bool TlsSession::feed(std::span<const char> bytes) noexcept
{
    if (firstByte_ == 0 && !bytes.empty()) {
        firstByte_ = bytes.front();
    }
    return bytes.empty() || ::BIO_write(in_, bytes.data(), static_cast<int>(bytes.size())) > 0;
}

Transferred TlsSession::handshake() noexcept
{
    ::ERR_clear_error();
    const int result = ::SSL_do_handshake(session_.get());
    return result == 1 ? Transferred{Transferred::Status::ok, 0} : ended(result);
}

Transferred TlsSession::read(std::span<char> buffer) noexcept
{
    std::size_t bytes = 0;
    ::ERR_clear_error();
    while (bytes < buffer.size()) {
        std::size_t some = 0;
        const int result = ::SSL_read_ex(session_.get(), buffer.data() + bytes, buffer.size() - bytes, &some);
        if (result != 1) {
            const auto end = ended(result);
            return bytes > 0 ? Transferred{Transferred::Status::ok, bytes} : end;
        }
        bytes += some;
        if (BIO_pending(in_) == 0 && ::SSL_has_pending(session_.get()) == 0) {
            break;
        }
    }
    return {Transferred::Status::ok, bytes};
}

bool TlsSession::write(std::string_view bytes) noexcept
{
    std::size_t written = 0;
    ::ERR_clear_error();
    const int result = ::SSL_write_ex(session_.get(), bytes.data(), bytes.size(), &written);
    if (result != 1) {
        (void)ended(result);
    }
    return result == 1;
}

std::string_view TlsSession::toSend() const noexcept
{
    char* begin = nullptr;
    const auto size = BIO_get_mem_data(out_, &begin);
    return std::string_view(begin, static_cast<std::size_t>(size)).substr(sent_);
}

void TlsSession::sent(std::size_t bytes) noexcept
{
    sent_ += bytes;
    if (toSend().empty()) {
        (void)BIO_reset(out_);
        sent_ = 0;
    }
}

/// What it means that a call of OpenSSL has not done what it was asked.
Transferred TlsSession::ended(int result) noexcept
{
    const int kind = ::SSL_get_error(session_.get(), result);
    if (kind == SSL_ERROR_WANT_READ) {
        return {Transferred::Status::wouldBlock, 0};
    }
    if (kind != SSL_ERROR_ZERO_RETURN && !failure_) {
        try {
            failure_ = failureOf(::ERR_peek_last_error());
        } catch (const std::bad_alloc&) {
            failure_.emplace();
        }
    }
    ::ERR_clear_error();
    return {};
}

TlsFailure TlsSession::failureOf(unsigned long error) const
{
    constexpr char alert = 0x15;
    constexpr char handshake = 0x16;
    if (firstByte_ != 0 && firstByte_ != alert && firstByte_ != handshake) {
        return {Cause::tlsNotSpoken, {}};
    }
    const int told = ERR_GET_REASON(error) - SSL_AD_REASON_OFFSET;
    const auto said = '"' + reasonText(error) + '"';
    if (ERR_GET_LIB(error) == ERR_LIB_SSL && isAboutCertificate(told) &&
        (wasAsked_ || told == TLS13_AD_CERTIFICATE_REQUIRED)) {
        return {Cause::clientCertificateWanted,
                (hasCertificate_ ? "that of tls.certFile was refused: " : "tls.certFile is empty: ") + said};
    }
    return {Errc::tlsFailed, said};
}

TlsReport TlsSession::report() const
{
    TlsReport report{::SSL_get_version(session_.get()), ::SSL_get_cipher(session_.get()), {}, {}, 0};
    if (const X509* certificate = ::SSL_get0_peer_certificate(session_.get())) {
        report.subject = textOfName(::X509_get_subject_name(certificate));
        report.issuer = textOfName(::X509_get_issuer_name(certificate));
        int seconds = 0;
        ::ASN1_TIME_diff(&report.daysLeft, &seconds, nullptr, ::X509_get0_notAfter(certificate));
    }
    return report;
}

} // namespace redislock::detail

#endif
