"""The options of curl, and how a command line is split into them."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_WITH_ARGUMENT_TEXT = """
    abstract-unix-socket alt-svc aws-sigv4 cacert capath cert cert-type ciphers config
    connect-timeout connect-to continue-at cookie cookie-jar create-file-mode crlfile curves data
    data-ascii data-binary data-raw data-urlencode delegation dns-interface dns-ipv4-addr
    dns-ipv6-addr dns-servers doh-url dump-header ech egd-file engine etag-compare etag-save
    expand-data expand-header expand-json expand-url expect100-timeout form form-string ftp-account
    ftp-alternative-to-user ftp-method ftp-port ftp-ssl-ccc-mode happy-eyeballs-timeout-ms
    haproxy-clientip header help hostpubmd5 hostpubsha256 hsts interface ip-tos ipfs-gateway json
    keepalive-cnt keepalive-time key key-type knownhosts krb libcurl limit-rate local-port
    login-options mail-auth mail-from mail-rcpt max-filesize max-redirs max-time netrc-file noproxy
    oauth2-bearer output output-dir parallel-max parallel-max-host pass pinnedpubkey preproxy proto
    proto-default proto-redir proxy proxy-cacert proxy-capath proxy-cert proxy-cert-type
    proxy-ciphers proxy-crlfile proxy-header proxy-key proxy-key-type proxy-pass
    proxy-pinnedpubkey proxy-service-name proxy-tls13-ciphers proxy-tlsauthtype proxy-tlspassword
    proxy-tlsuser proxy-user proxy1.0 pubkey quote random-file range rate referer request
    request-target resolve retry retry-delay retry-max-time sasl-authzid service-name sigalgs socks4
    socks4a socks5 socks5-gssapi-service socks5-hostname speed-limit speed-time ssl-sessions stderr
    telnet-option tftp-blksize time-cond tls-max tls13-ciphers tlsauthtype tlspassword tlsuser trace
    trace-ascii trace-config unix-socket upload-file upload-flags url url-query user user-agent
    variable vlan-priority write-out
"""
_WITHOUT_ARGUMENT_TEXT = """
    alpn anyauth append basic buffer ca-native cert-status clobber compressed compressed-ssh
    create-dirs crlf digest disable disable-eprt disable-epsv disallow-username-in-url
    doh-cert-status doh-insecure dump-ca-embed eprt epsv fail fail-early fail-with-body false-start
    follow form-escape ftp-create-dirs ftp-pasv ftp-pret ftp-skip-pasv-ip ftp-ssl ftp-ssl-ccc
    ftp-ssl-control ftp-ssl-reqd get globoff haproxy-protocol head http0.9 http1.0 http1.1 http2
    http2-prior-knowledge http3 http3-only ignore-content-length include insecure ipv4 ipv6
    junk-session-cookies keepalive list-only location location-trusted mail-rcpt-allowfails manual
    metalink mptcp negotiate netrc netrc-optional next npn ntlm ntlm-wb out-null parallel
    parallel-immediate path-as-is post301 post302 post303 progress-bar progress-meter proxy-anyauth
    proxy-basic proxy-ca-native proxy-digest proxy-http2 proxy-insecure proxy-negotiate proxy-ntlm
    proxy-ssl-allow-beast proxy-ssl-auto-client-cert proxy-tlsv1 proxytunnel raw remote-header-name
    remote-name remote-name-all remote-time remove-on-error retry-all-errors retry-connrefused
    sasl-ir sessionid show-error show-headers silent skip-existing socks5-basic socks5-gssapi
    socks5-gssapi-nec ssl ssl-allow-beast ssl-auto-client-cert ssl-no-revoke ssl-reqd
    ssl-revoke-best-effort sslv2 sslv3 styled-output suppress-connect-headers tcp-fastopen
    tcp-nodelay tftp-no-options tls-earlydata tlsv1 tlsv1.0 tlsv1.1 tlsv1.2 tlsv1.3 tr-encoding
    trace-ids trace-time use-ascii verbose version xattr
"""
_SHORT_TEXT = """
    0=http1.0 1=tlsv1 2=sslv2 3=sslv3 4=ipv4 6=ipv6 :=next #=progress-bar A=user-agent B=use-ascii
    C=continue-at D=dump-header E=cert F=form G=get H=header I=head J=remote-header-name K=config
    L=location M=manual N=buffer O=remote-name P=ftp-port Q=quote R=remote-time S=show-error
    T=upload-file U=proxy-user V=version X=request Y=speed-limit Z=parallel a=append b=cookie
    c=cookie-jar d=data e=referer f=fail g=globoff h=help i=include j=junk-session-cookies
    k=insecure l=list-only m=max-time n=netrc o=output p=proxytunnel q=disable r=range s=silent
    t=telnet-option u=user v=verbose w=write-out x=proxy y=speed-time z=time-cond
"""
_WITH_ARGUMENT = frozenset(_WITH_ARGUMENT_TEXT.split())
_WITHOUT_ARGUMENT = frozenset(_WITHOUT_ARGUMENT_TEXT.split())
_SHORT = dict(pair.split("=") for pair in _SHORT_TEXT.split())
_OPTION_NAME = re.compile(r"[A-Za-z0-9.-]{1,40}")
_POWERSHELL = frozenset((b"-uri", b"-method", b"-headers", b"-body", b"-contenttype"))


class CurlError(ValueError):
    """A command can't be read. The message gives the reason, and quotes no argument."""


class Option(NamedTuple):
    """An option by its long name, and its argument, if it takes one. `url` is also a bare URL."""

    name: str
    argument: bytes


def split_options(words: Sequence[bytes]) -> Iterator[Option]:
    """Split the words after `curl` into options, in their order.

    Raises CurlError for an unknown option, or one without its argument.
    """
    rest = iter(words)
    has_ended = False
    for word in rest:
        if has_ended or not word.startswith(b"-") or word == b"-":
            yield Option("url", word)
        elif word == b"--":
            has_ended = True
        elif word.lower() in _POWERSHELL:
            raise CurlError("options of PowerShell's curl; use those of curl.exe")
        elif word.startswith(b"--"):
            yield _read_long(word[2:], rest)
        else:
            yield from _read_short(word[1:], rest)


def _read_long(word: bytes, rest: Iterator[bytes]) -> Option:
    name = word.decode("utf-8", "backslashreplace")
    if name in _WITH_ARGUMENT:
        return Option(name, _read_argument(f"--{name}", rest))
    # `--no-` turns off an option without an argument.
    if name in _WITHOUT_ARGUMENT:
        return Option(name, b"")
    if name.startswith("no-") and name[3:] in _WITHOUT_ARGUMENT:
        return Option(name, b"")
    # What follows the name of an option can be a key: `--X-Gateway-Key:…`.
    shown = _OPTION_NAME.match(name)
    raise CurlError(f"unknown option --{shown[0] if shown else '…'}")


def _read_short(letters: bytes, rest: Iterator[bytes]) -> Iterator[Option]:
    """Read short options that share a hyphen; the first with an argument takes what follows."""
    for at, letter in enumerate(letters.decode("latin-1")):
        name = _SHORT.get(letter)
        if name is None:
            raise CurlError(f"unknown option -{letter if letter.isalnum() else '…'}")
        if name in _WITH_ARGUMENT:
            following = letters[at + 1 :]
            yield Option(name, following or _read_argument(f"-{letter}", rest))
            return
        yield Option(name, b"")


def _read_argument(option: str, rest: Iterator[bytes]) -> bytes:
    argument = next(rest, None)
    if argument is None:
        raise CurlError(f"{option}: without its argument")
    return argument
