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
	maxTokenBytes = 128 << 10 // size of the response of a token service
	maxFieldBytes = 2 << 10   // size of a value in a challenge
)

// session sends requests to the registry of a reference, and logs in when the registry
// asks for it. oras has a client for that, too: see RATIONALE, "Why does our registry
// session replace oras' auth client and its layout store?".
type session struct {
	http        *http.Client
	ref         Reference
	origin      network.Origin // origin of the registry
	credentials Credentials
	warn        func(text string)
	pushing     bool // a push does not go on anonymously

	// These belong to one goroutine: that of the pull or the push.
	authorization string            // the header; empty: the registry has not asked for one
	challenges    []string          // the WWW-Authenticate headers of the registry's last answer 401
	login         *credential.Login // nil: not searched for yet; zero: anonymous
	search        credential.Search
}

// Do implements remote.Client.
func (s *session) Do(req *http.Request) (*http.Response, error) {
	if !s.isRegistryURL(req.URL) {
		return nil, fmt.Errorf("the registry leads to %s, which is not asked", shortLine(req.URL.Host))
	}
	req = req.Clone(req.Context())
	req.Header.Set("User-Agent", userAgent)
	if s.authorization != "" {
		req.Header.Set("Authorization", s.authorization)
	}
	resp, err := s.send(req)
	if err != nil || !s.isRegistryURL(resp.Request.URL) {
		return resp, err // a redirect led to another host, which gets no login
	}
	if resp.StatusCode == http.StatusUnauthorized {
		_ = resp.Body.Close()
		s.challenges = resp.Header.Values("WWW-Authenticate")
		if err := s.authorize(req.Context()); err != nil {
			return nil, fmt.Errorf("%w%s", err, s.searchNote())
		}
		if resp, err = s.resend(req); err != nil || !s.isRegistryURL(resp.Request.URL) {
			return resp, err
		}
	}
	status := resp.StatusCode
	if s.login == nil || *s.login == (credential.Login{}) || status != http.StatusUnauthorized && status != http.StatusForbidden {
		return resp, nil
	}
	if s.authorizeAnonymously(req.Context(), fmt.Errorf("the registry refuses it (status %d)", status)) != nil {
		return resp, nil
	}
	_ = resp.Body.Close()
	return s.resend(req)
}

// resend sends a request again with the current Authorization header.
func (s *session) resend(req *http.Request) (resp *http.Response, err error) {
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

// searchNote returns a part of a sentence that lists the files in which a login was searched
// for; empty if there was no search.
func (s *session) searchNote() string {
	if s.search.Files == nil {
		return ""
	}
	return "; a login was looked for in " + strings.Join(s.search.Files, ", ")
}

// isRegistryURL reports whether a URL leads to the registry itself, and not to another host.
func (s *session) isRegistryURL(u *url.URL) bool {
	o, _, err := network.ParseOrigin(u.Scheme + "://" + u.Host)
	return err == nil && o == s.origin
}

// send sends a request. Registries without a listing of referrers answer such a request
// in many ways, with redirects to a web site among them. send turns all these answers
// into 404, as in the specification, so that oras asks for the tag next.
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

// authorize sets s.authorization by the login of the registry, which it searches for first.
func (s *session) authorize(ctx context.Context) (err error) {
	if s.login == nil {
		s.login = new(credential.Login)
		if s.credentials != nil {
			*s.login, s.search = s.credentials(ctx, s.ref.Host)
		}
		if s.search.Unusable != nil && *s.login == (credential.Login{}) {
			return s.authorizeAnonymously(ctx, errors.New(strings.Join(s.search.Unusable, ", ")))
		}
	}
	if s.authorization, err = s.header(ctx, *s.login); err != nil && *s.login != (credential.Login{}) {
		return s.authorizeAnonymously(ctx, err)
	}
	return err
}

// authorizeAnonymously sets s.authorization for a pull without a login, and warns about it:
// public repositories refuse an expired login, too. why is the reason why the login cannot be
// used. For a push, authorizeAnonymously returns why.
func (s *session) authorizeAnonymously(ctx context.Context, why error) error {
	if s.pushing {
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

// header returns the Authorization header for a login, in a form that one of the registry's
// challenges accepts.
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

// parameters reads the parameters of a challenge: realm="...",service="...",scope="...".
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

// token gets a token from the token service that the registry has named, and sends it the
// login. As with Docker, the registry decides which service sees the login. The policy for
// hosts applies to the service, too.
func (s *session) token(ctx context.Context, challenge map[string]string, login credential.Login) (string, error) {
	o, _, err := network.ParseOrigin(challenge["realm"])
	if err != nil {
		return "", fmt.Errorf("the token service %.200q of the registry: %w", challenge["realm"], err)
	}
	realm, err := url.Parse(challenge["realm"])
	if err != nil || realm.User != nil || len(challenge["realm"]) > maxFieldBytes {
		return "", fmt.Errorf("the token service %.200q of the registry is no URL", challenge["realm"])
	}
	if o.Protocol != network.HTTPS && !(s.ref.usesPlainHTTP() && usesPlainHTTP(o.Host)) {
		return "", fmt.Errorf("the token service %s of the registry is not reached by https", realm.Host)
	}
	values := realm.Query()
	for _, name := range []string{"service", "scope"} {
		if challenge[name] != "" {
			values.Set(name, challenge[name])
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
