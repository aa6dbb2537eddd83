package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"time"
)

// Status decodes what the daemon says of itself into v, which `rankfs --json status` prints.
func (p *Place) Status(v any) {
	p.t.Helper()
	if err := p.ask("status", nil, v); err != nil {
		p.t.Fatalf("ask the daemon on %s for its status: %v\n%s", p.name(), err, p.Log())
	}
}

// Opened is how many batches were opened there.
func (p *Place) Opened() uint64 {
	p.t.Helper()
	var s struct{ Counters struct{ Opens uint64 } }
	p.Status(&s)
	return s.Counters.Opens
}

// Evict is `rankfs cache evict`.
func (p *Place) Evict(view string) error {
	return p.ask("evict", map[string]string{"name": view}, new(any))
}

// answerTime bounds an answer, as commands do: a daemon gives it in milliseconds, unless it
// is stopped or cannot open what it takes.
const answerTime = 10 * time.Second

// ask asks the daemon as commands do, by its socket: tests that wait ask often, and a
// command on another host is two programs that begin.
func (p *Place) ask(method string, request, result any) error {
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	sockets, err := filepath.Glob(p.Dir + "/run/*.sock")
	if err != nil || len(sockets) != 1 {
		return fmt.Errorf("its sockets are %q: %w", sockets, err)
	}
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://rankfs/v1/"+method, bytes.NewReader(body))
	if err != nil {
		return err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", sockets[0])
	}}}
	response, err := client.Do(post)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var answer struct{ Result, Error json.RawMessage }
	for lines := json.NewDecoder(response.Body); answer.Result == nil; { // before it come lines of progress
		if err := lines.Decode(&answer); err != nil || response.StatusCode != http.StatusOK || answer.Error != nil {
			return fmt.Errorf("%s is answered by %s, %s: %w", method, response.Status, answer.Error, err)
		}
	}
	return json.Unmarshal(answer.Result, result)
}
