package network

import (
	"errors"
	"strings"
)

// Origin is the server in a URL.
type Origin struct {
	Protocol Protocol
	Host     Host
	Port     uint16
}

// ParseOrigin parses the beginning of http[s]://HOST[:PORT][/...]. rest is the URL after that.
// A user name, or text that is no host, is an error.
func ParseOrigin(url string) (o Origin, rest string, err error) {
	scheme, rest, ok := strings.Cut(url, "://")
	o.Protocol = Protocol(strings.ToLower(scheme))
	if !ok || o.Protocol != HTTP && o.Protocol != HTTPS {
		return o, "", errors.New("it does not begin with http:// or https://")
	}
	o.Port = o.Protocol.port()
	authority, rest := rest, ""
	if i := strings.IndexAny(authority, "/?#"); i >= 0 {
		authority, rest = authority[:i], authority[i:]
	}
	if strings.ContainsRune(authority, '@') {
		return o, "", errors.New("it has a user name before the host")
	}
	host, port, hasPort, err := splitAuthority(authority)
	if err != nil {
		return o, "", err
	}
	if hasPort {
		if o.Port, err = parsePort(port); err != nil {
			return o, "", err
		}
	}
	o.Host, err = ParseHost(host)
	return o, rest, err
}

// splitAuthority splits HOST[:PORT]. An IPv6 address keeps its brackets.
func splitAuthority(s string) (host, port string, hasPort bool, err error) {
	colon := strings.LastIndexByte(s, ':')
	if strings.HasPrefix(s, "[") {
		end := strings.IndexByte(s, ']')
		switch {
		case end == len(s)-1:
			return s, "", false, nil
		case end < 0 || s[end+1] != ':':
			return "", "", false, errors.New("brackets hold an IPv6 address, and only a port can follow")
		}
		return s[:end+1], s[end+2:], true, nil
	}
	switch {
	case colon < 0:
		return s, "", false, nil
	case strings.Count(s, ":") > 1:
		return "", "", false, errors.New("an IPv6 address stands in brackets")
	}
	return s[:colon], s[colon+1:], true, nil
}
