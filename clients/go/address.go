package polynym

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// address is the host and port of a server, and whether the connection to it is encrypted.
type address struct {
	host string
	port string
	tls  bool
}

// parseServers parses the addresses of servers, separated by commas. All are encrypted, or none.
func parseServers(list string) ([]address, error) {
	var servers []address
	for _, server := range strings.Split(list, ",") {
		parsed, err := parseAddress(strings.TrimSpace(server))
		if err != nil {
			return nil, err
		}
		if len(servers) > 0 && parsed.tls != servers[0].tls {
			return nil, errors.New("polynym: the servers mix TLS and plain text: give all the same scheme")
		}
		servers = append(servers, parsed)
	}
	return servers, nil
}

// parseAddress parses `http://HOST:PORT`, `https://HOST:PORT` or `HOST:PORT`. The last of these is
// plain text for a loopback host, and TLS for any other.
func parseAddress(server string) (address, error) {
	if strings.Contains(server, "@") {
		return address{}, errors.New("polynym: the server has user information: pass a token with WithToken")
	}
	_, afterScheme, isURL := strings.Cut(server, "://")
	if isURL {
		authority, _, _ := strings.Cut(afterScheme, "/")
		if err := checkPort(authority); err != nil {
			return address{}, err
		}
		return parseURL(server)
	}
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		return address{}, fmt.Errorf("polynym: server %q: expected https://HOST:PORT or HOST:PORT", server)
	}
	if err := checkPort(server); err != nil {
		return address{}, err
	}
	if host == "" {
		return address{}, fmt.Errorf("polynym: server %q: expected https://HOST:PORT or HOST:PORT", server)
	}
	return address{host: host, port: port, tls: !isLoopback(host)}, nil
}

// checkPort checks the port of an authority, if it has one.
func checkPort(authority string) error {
	afterHost := authority[strings.LastIndex(authority, "]")+1:]
	_, port, found := strings.Cut(afterHost, ":")
	number, err := strconv.ParseUint(port, 10, 16)
	if found && (err != nil || number == 0) {
		return fmt.Errorf("polynym: the port of a server must be a number from 1 to 65535, not %q", port)
	}
	return nil
}

func parseURL(server string) (address, error) {
	parsed, err := url.Parse(server)
	if err != nil {
		return address{}, errors.New("polynym: the server is not a URL: expected https://HOST:PORT")
	}
	if parsed.Hostname() == "" || strings.Trim(parsed.Path, "/") != "" || parsed.RawQuery != "" {
		return address{}, fmt.Errorf("polynym: server %q: expected https://HOST:PORT", server)
	}
	defaultPorts := map[string]string{"http": "80", "https": "443"}
	port, known := defaultPorts[parsed.Scheme]
	if !known {
		return address{}, fmt.Errorf("polynym: server %q: the scheme must be http or https", server)
	}
	if parsed.Port() != "" {
		port = parsed.Port()
	}
	return address{host: parsed.Hostname(), port: port, tls: parsed.Scheme == "https"}, nil
}

// String is the address as HOST:PORT.
func (a address) String() string { return net.JoinHostPort(a.host, a.port) }

func isLoopback(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
