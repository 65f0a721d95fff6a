package oci

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/registry/oci/credential"
)

const (
	userAgent     = "stockade"
	maxTokenBytes = 128 << 10 // of the answer of a token service
	maxFieldBytes = 2 << 10   // of what a challenge says
)

// session sends requests to the registry of a reference, with a login or a token
// when it asks for one. The library has a client for that, too: see RATIONALE,
// "Why does our registry session replace oras' auth client and its layout store?".
type session struct {
	http        *http.Client
	ref         Reference
	origin      network.Origin // of the registry
	credentials Credentials
	warn        func(text string)
	push        bool // a push does not go on as nobody

	// Of one goroutine: that of the pull or the push.
	authorization string            // the header; empty: the registry has not asked for one
	challenges    []string          // with which the registry has asked
	login         *credential.Login // nil: it was not looked for yet; zero: nobody's
	looked        credential.Looked
}

// Do implements remote.Client.
func (s *session) Do(req *http.Request) (*http.Response, error) {
	if !s.own(req.URL) {
		return nil, fmt.Errorf("the registry leads to %s, which is not asked", shown(req.URL.Host))
	}
	req = req.Clone(req.Context())
	req.Header.Set("User-Agent", userAgent)
	if s.authorization != "" {
		req.Header.Set("Authorization", s.authorization)
	}
	resp, err := s.send(req)
	if err != nil || !s.own(resp.Request.URL) {
		return resp, err // a redirect has led elsewhere: no login is sent there
	}
	if resp.StatusCode == http.StatusUnauthorized {
		_ = resp.Body.Close()
		s.challenges = resp.Header.Values("WWW-Authenticate")
		if err := s.authorize(req.Context()); err != nil {
			return nil, fmt.Errorf("%w%s", err, s.lookedIn())
		}
		if resp, err = s.again(req); err != nil || !s.own(resp.Request.URL) {
			return resp, err
		}
	}
	status := resp.StatusCode
	if s.login == nil || *s.login == (credential.Login{}) || status != http.StatusUnauthorized && status != http.StatusForbidden {
		return resp, nil
	}
	if s.asNobody(req.Context(), fmt.Errorf("the registry refuses it (status %d)", status)) != nil {
		return resp, nil
	}
	_ = resp.Body.Close()
	return s.again(req)
}

// again sends a request once more, with another header.
func (s *session) again(req *http.Request) (resp *http.Response, err error) {
	req.Header.Set("Authorization", s.authorization)
	if req.Body != nil && req.Body != http.NoBody {
		if req.GetBody == nil {
			return nil, errors.New("the registry asks for a login when it is too late for that")
		}
		if req.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	return s.send(req)
}

// lookedIn says in which files a login was looked for.
func (s *session) lookedIn() string {
	if s.looked.Files == nil {
		return ""
	}
	return "; a login was looked for in " + strings.Join(s.looked.Files, ", ")
}

// own reports whether a URL is one of the registry.
func (s *session) own(u *url.URL) bool {
	o, _, err := network.ParseOrigin(u.Scheme + "://" + u.Host)
	return err == nil && o == s.origin
}

// send sends a request. A registry that does not know the listing of referrers
// answers it in many ways, redirects to its web site among them. All are the one
// that the specification has, after which the tag is asked for.
func (s *session) send(req *http.Request) (*http.Response, error) {
	if !strings.HasPrefix(strings.TrimPrefix(req.URL.Path, "/v2/"+s.ref.Path), "/referrers/") {
		return s.http.Do(req)
	}
	client := *s.http
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	switch status := resp.StatusCode; {
	case status/100 == 3, status == http.StatusBadRequest, status == http.StatusMethodNotAllowed, status == http.StatusNotAcceptable:
		_ = resp.Body.Close()
		resp.StatusCode, resp.Body = http.StatusNotFound, http.NoBody
	}
	return resp, nil
}

// authorize makes the header for the login of the registry.
func (s *session) authorize(ctx context.Context) (err error) {
	if s.login == nil {
		s.login = new(credential.Login)
		if s.credentials != nil {
			*s.login, s.looked = s.credentials(ctx, s.ref.Host)
		}
		if s.looked.Wrong != nil && *s.login == (credential.Login{}) {
			return s.asNobody(ctx, errors.New(strings.Join(s.looked.Wrong, ", ")))
		}
	}
	if s.authorization, err = s.header(ctx, *s.login); err != nil && *s.login != (credential.Login{}) {
		return s.asNobody(ctx, err)
	}
	return err
}

// asNobody makes the header for a pull without a login, which is told. Why is what is wrong
// with the login: public repositories refuse one that has expired, too.
func (s *session) asNobody(ctx context.Context, why error) error {
	if s.push {
		return why
	}
	header, err := s.header(ctx, credential.Login{})
	if err != nil {
		return err
	}
	s.authorization = header
	*s.login = credential.Login{}
	if s.warn != nil {
		s.warn(fmt.Sprintf("no login is used for %s, and the pull goes on as nobody: %v", s.ref.Host, why))
	}
	return nil
}

// header returns the Authorization header for a login, in the scheme that the registry demands.
func (s *session) header(ctx context.Context, login credential.Login) (string, error) {
	for _, c := range s.challenges {
		scheme, rest, _ := strings.Cut(c, " ")
		switch strings.ToLower(scheme) {
		case "bearer":
			return s.token(ctx, parameters(rest), login)
		case "basic":
			if login.Username == "" || login.Password == "" {
				return "", fmt.Errorf("the registry wants a login, and there is none for %s; make one with docker login %s", s.ref.Host, s.ref.Host)
			}
			req := http.Request{Header: http.Header{}}
			req.SetBasicAuth(login.Username, login.Password)
			return req.Header.Get("Authorization"), nil
		}
	}
	return "", errors.New("the registry wants a login and does not say which")
}

var parameter = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`([a-zA-Z_]+)\s*=\s*(?:"([^"]*)"|([^\s",]+))`) })

// parameters reads realm="...",service="...",scope="...".
func parameters(s string) map[string]string {
	out := map[string]string{}
	if len(s) > 4*maxFieldBytes {
		return out
	}
	for _, m := range parameter().FindAllStringSubmatch(s, -1) {
		out[strings.ToLower(m[1])] = m[2] + m[3]
	}
	return out
}

// token asks the token service that a registry has named, with the login for the
// registry: as Docker does it, the registry says who may see that. Whether the
// service may be reached is decided as for any host.
func (s *session) token(ctx context.Context, says map[string]string, login credential.Login) (string, error) {
	o, _, err := network.ParseOrigin(says["realm"])
	if err != nil {
		return "", fmt.Errorf("the token service %.200q of the registry: %w", says["realm"], err)
	}
	realm, err := url.Parse(says["realm"])
	if err != nil || realm.User != nil || len(says["realm"]) > maxFieldBytes {
		return "", fmt.Errorf("the token service %.200q of the registry is no URL", says["realm"])
	}
	if o.Protocol != network.HTTPS && !(s.ref.plain() && plainly(o.Host)) {
		return "", fmt.Errorf("the token service %s of the registry is not reached by https", realm.Host)
	}
	values := realm.Query()
	for _, name := range []string{"service", "scope"} {
		if says[name] != "" {
			values.Set(name, says[name])
		}
	}
	var req *http.Request
	if login.IdentityToken != "" {
		realm.RawQuery = ""
		values.Set("grant_type", "refresh_token")
		values.Set("client_id", userAgent)
		values.Set("refresh_token", login.IdentityToken)
		if req, err = http.NewRequestWithContext(ctx, http.MethodPost, realm.String(), strings.NewReader(values.Encode())); err == nil {
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
	} else {
		realm.RawQuery = values.Encode()
		if req, err = http.NewRequestWithContext(ctx, http.MethodGet, realm.String(), nil); err == nil && login.Username != "" {
			req.SetBasicAuth(login.Username, login.Password)
		}
	}
	if err != nil {
		return "", err
	}
	req.Header.Set("User-Agent", userAgent)
	resp, err := s.http.Do(req)
	if err != nil {
		return "", fmt.Errorf("ask the token service of %s: %w", s.ref.Host, err)
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized, http.StatusForbidden:
		return "", fmt.Errorf("the token service %s refuses the login for %s (status %d); make one with docker login %s", realm.Host, s.ref.Host, resp.StatusCode, s.ref.Host)
	default:
		return "", fmt.Errorf("the token service %s answers with status %d", realm.Host, resp.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxTokenBytes+1))
	if err != nil {
		return "", err
	}
	var answer struct {
		Token       string `json:"token"`
		AccessToken string `json:"access_token"`
	}
	if len(data) > maxTokenBytes || json.Unmarshal(data, &answer) != nil {
		return "", fmt.Errorf("what the token service %s answers is no token", realm.Host)
	}
	token := cmp.Or(answer.AccessToken, answer.Token)
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return "", fmt.Errorf("what the token service %s answers is no token", realm.Host)
	}
	return "Bearer " + token, nil
}
