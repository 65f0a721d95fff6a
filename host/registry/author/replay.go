package author

import (
	"context"
	"errors"
	"fmt"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/services"
)

type answer struct {
	line        int
	method, url string
	wants       [][2]string // headers that the request must have
	wantsBody   *string     // body that the request must have; nil: any
	status      int
	headers     [][2]string
	body        string
	used        bool
}

// parseAnswer reads a section "http METHOD URL" and its body.
func parseAnswer(sec section) (*answer, error) {
	method, u, _ := strings.Cut(sec.rest, " ")
	a := &answer{line: sec.line, method: method, url: strings.TrimSpace(u)}
	if _, _, err := network.ParseOrigin(a.url); err != nil || strings.ToUpper(method) != method {
		return nil, errors.New("it is http METHOD URL, with an absolute URL: http GET https://api.example.com/now")
	}
	var request []string
	rest := sec.body
	for len(rest) > 0 && strings.HasPrefix(rest[0], ">") {
		request, rest = append(request, strings.TrimPrefix(strings.TrimPrefix(rest[0], ">"), " ")), rest[1:]
	}
	var err error
	var body []string
	if a.wants, body, err = parseHead(request); err != nil {
		return nil, err
	}
	if body != nil {
		text := strings.Join(body, "\n")
		a.wantsBody = &text
	}
	if len(rest) == 0 {
		return nil, errors.New("the answer begins with its status, such as 200")
	}
	if a.status, err = strconv.Atoi(rest[0]); err != nil || a.status < 200 || a.status > 599 {
		return nil, fmt.Errorf("the answer begins with its status, such as 200, and not with %.40q", rest[0])
	}
	if a.headers, body, err = parseHead(rest[1:]); err != nil {
		return nil, err
	}
	a.body = strings.Join(body, "\n")
	return a, nil
}

// parseHead reads headers, and the body after the empty line that ends them. body is nil if
// there is no empty line.
func parseHead(lines []string) (headers [][2]string, body []string, err error) {
	for i, line := range lines {
		if line == "" {
			return headers, append([]string{}, lines[i+1:]...), nil
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || name == "" || strings.ContainsAny(name, " \t") {
			return nil, nil, fmt.Errorf("%.60q is no header; the body stands behind an empty line", line)
		}
		headers = append(headers, [2]string{textproto.CanonicalMIMEHeaderKey(name), strings.TrimSpace(value)})
	}
	return headers, nil, nil
}

// replay answers requests with the recorded answers of a file. It reaches no network.
type replay struct {
	mu       sync.Mutex
	answers  []*answer
	problems []string // problems with the requests of the running call
}

// takeProblems returns the problems since its last call.
func (r *replay) takeProblems() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.problems
	r.problems = nil
	return out
}

// Fetch implements [services.HTTP].
func (r *replay) Fetch(_ context.Context, grant policy.Grant, req services.Request) (*services.Response, error) {
	if grant.Network() == nil {
		return nil, effectError(services.Denied, "the network is not granted to this call")
	}
	origin, _, err := network.ParseOrigin(req.URL)
	if err != nil {
		return nil, effectError(services.Invalid, "URL: %v", err)
	}
	u, err := url.Parse(req.URL)
	if err != nil {
		return nil, effectError(services.Invalid, "URL: %v", err)
	}
	d := grant.Network().Decide(origin.Host.String(), origin.Port, origin.Protocol)
	if err := d.Err(); err != nil {
		grant.NoteRefused(d)
		return nil, effectError(services.Denied, "%v", err)
	}
	headers := map[string][]string{}
	for _, h := range req.Headers {
		name := textproto.CanonicalMIMEHeaderKey(h[0])
		headers[name] = append(headers[name], h[1])
	}
	open := headers["Authorization"]
	if req.Fill != nil {
		if headers, err = req.Fill(u, headers, req.Body); err != nil {
			return nil, effectError(services.Denied, "%v", err)
		}
	}
	if len(open) > 0 && slices.Equal(open, headers["Authorization"]) {
		return nil, effectError(services.Invalid, `header "Authorization": it takes only a placeholder of a secret`)
	}
	if err := grant.TakeRequest(d, int64(len(req.URL)+len(req.Body))); err != nil {
		return nil, effectError(services.Denied, "%v", err)
	}
	a := r.find(req, headers)
	if a == nil { // the guest does not learn the expected request
		return nil, effectError(services.Connect, "the request is not recorded")
	}
	resp := &services.Response{Status: a.status, URL: req.URL, Headers: slices.Clone(a.headers), Body: []byte(a.body)}
	slices.SortStableFunc(resp.Headers, func(x, y [2]string) int { return strings.Compare(x[0], y[0]) })
	limit := grant.Limits().HTTPResponseBytes
	switch {
	case req.MaxBytes > 0 && req.MaxBytes <= limit && len(a.body) > req.MaxBytes:
		resp.Body, resp.Truncated = resp.Body[:req.MaxBytes], true
	case len(a.body) > limit:
		return nil, &services.Error{Kind: services.TooLarge, Limit: int64(limit), Err: fmt.Errorf("the answer is larger than %d bytes", limit)}
	}
	grant.NoteReceived(d, int64(len(a.body)))
	return resp, nil
}

// find returns the recorded answer to a request. If there is none, it returns nil and
// records a problem for the author of the test.
func (r *replay) find(req services.Request, headers map[string][]string) *answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	problem := fmt.Errorf("%.20s %.300s is not recorded: no line \"http METHOD URL\" answers it", req.Method, req.URL)
	for _, a := range r.answers {
		if a.used || a.method != req.Method || a.url != req.URL {
			continue
		}
		if err := a.checkRequest(req, headers); err != nil {
			problem = fmt.Errorf("%.20s %.300s is not the request in line %d: %w", req.Method, req.URL, a.line, err)
			continue
		}
		a.used = true
		return a
	}
	r.problems = append(r.problems, problem.Error())
	return nil
}

// checkRequest returns an error if a request does not have the recorded body and headers.
func (a *answer) checkRequest(req services.Request, headers map[string][]string) error {
	for _, want := range a.wants {
		if got := strings.Join(headers[want[0]], ", "); got != want[1] {
			return fmt.Errorf("its header %s is %.200q, and not %.200q", want[0], got, want[1])
		}
	}
	if a.wantsBody != nil && strings.TrimSuffix(string(req.Body), "\n") != *a.wantsBody {
		return fmt.Errorf("its body is %.500q, and not %.500q", req.Body, *a.wantsBody)
	}
	return nil
}

func effectError(kind services.Kind, format string, args ...any) error {
	return &services.Error{Kind: kind, Err: fmt.Errorf(format, args...)}
}
