package openai

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
)

const (
	maxModelsBytes = 4 << 20
	maxModels      = 10_000
)

// Models asks the server which models it has, which is the cheapest request that
// tells whether it is there and takes the key. Nothing of a conversation is sent.
// A server that is there and has no such list is no error, and names none: nil. Of the
// others there are at most 10,000 names, as the server has written them. It is not tried
// again; ctx bounds the time that it takes, and the stall time-out that of each silence.
func (m *Model) Models(ctx context.Context) ([]string, error) {
	if err := m.checkOptions(); err != nil {
		return nil, err
	}
	x, done := m.newExchange(ctx)
	defer done()
	req, err := http.NewRequestWithContext(x.ctx, http.MethodGet, strings.TrimRight(m.opts.BaseURL, "/")+"/models", nil)
	if err != nil {
		base, _ := url.Parse(m.opts.BaseURL) // checked above
		return nil, m.network(err, base, false)
	}
	if m.opts.APIKey != "" {
		req.Header.Set("Authorization", "Bearer "+m.opts.APIKey)
	}
	x.sent = true
	x.watch.arm()
	resp, err := x.client.Do(req)
	if err != nil {
		return nil, x.explain(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(x.watch.duringRead(resp.Body), maxModelsBytes))
	if err != nil {
		return nil, x.explain(err)
	}
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return nil, nil
	default:
		return nil, m.status(resp.StatusCode, resp.Header, body[:min(len(body), maxErrorBytes)])
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &list) != nil {
		return nil, nil
	}
	var names []string
	for _, d := range list.Data[:min(len(list.Data), maxModels)] {
		names = append(names, d.ID)
	}
	return names, nil
}
