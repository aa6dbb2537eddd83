package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"

	"rankfs/test/cluster/internal/site"
)

// SetReplication has there be n replicas of each block of a file, after a while.
func (c *namenodes) SetReplication(ctx context.Context, file string, n int) error {
	return c.change(ctx, file, fmt.Sprint("SETREPLICATION&replication=", n))
}

// SetCode has what is written to a directory be erasure-coded by a policy from now on.
func (c *namenodes) SetCode(ctx context.Context, dir, policy string) error {
	if err := c.change(ctx, "/", "ENABLEECPOLICY&ecpolicy="+policy); err != nil {
		return err
	}
	return c.change(ctx, dir, "SETECPOLICY&ecpolicy="+policy)
}

// PutByWeb writes a file as HDFS itself does, also with an erasure code, which the library
// behind Put does not know: a datanode does it.
func (c *namenodes) PutByWeb(ctx context.Context, file string, content []byte) error {
	answer, err := c.web(ctx, http.MethodPut, file, "CREATE", content)
	if err != nil {
		return err
	}
	return answer.Close()
}

// Snapshot takes a snapshot of a directory, which the directory has until the test ends.
func (c *namenodes) Snapshot(t testing.TB, dir, name string) {
	t.Helper()
	if err := c.change(t.Context(), dir, "ALLOWSNAPSHOT"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.Background()
		if err := errors.Join(c.remove(ctx, dir, "DELETESNAPSHOT&snapshotname="+name), c.change(ctx, dir, "DISALLOWSNAPSHOT")); err != nil {
			t.Error(err)
		}
	})
	if err := c.change(t.Context(), dir, "CREATESNAPSHOT&snapshotname="+name); err != nil {
		t.Fatal(err)
	}
}

// Check is what fsck says of a path, which has these options, as "files".
func (c *namenodes) Check(ctx context.Context, path string, options ...string) (string, error) {
	query := url.Values{"ugi": {"root"}, "path": {path}}
	for _, option := range options {
		query.Set(option, "1")
	}
	answer, err := c.ask(ctx, http.MethodGet, "/fsck?"+query.Encode(), nil)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(answer, maxLocations))
	return string(text), errors.Join(err, answer.Close())
}

func (c *namenodes) change(ctx context.Context, file, operation string) error {
	return c.do(ctx, http.MethodPut, file, operation)
}

func (c *namenodes) remove(ctx context.Context, file, operation string) error {
	return c.do(ctx, http.MethodDelete, file, operation)
}

func (c *namenodes) do(ctx context.Context, method, file, operation string) error {
	answer, err := c.web(ctx, method, file, operation, nil)
	if err != nil {
		return err
	}
	return answer.Close()
}

// web has the active namenode do an operation of WebHDFS, with its parameters.
func (c *namenodes) web(ctx context.Context, method, file, operation string, content []byte) (answer io.ReadCloser, err error) {
	return c.ask(ctx, method, "/webhdfs/v1"+file+"?user.name=root&op="+operation, content)
}

// ask asks the active namenode by HTTP, or the datanode that it names.
func (c *namenodes) ask(ctx context.Context, method, what string, content []byte) (answer io.ReadCloser, err error) {
	active, err := c.Active(ctx)
	if err != nil {
		return nil, err
	}
	address := fmt.Sprintf("http://%s:%d%s", active.Name, site.NameHTTP, what)
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	client := http.Client{Transport: &http.Transport{DialContext: active.DialContext, DisableKeepAlives: true}}
	got, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	if got.StatusCode/100 != 2 {
		text, _ := io.ReadAll(io.LimitReader(got.Body, 1<<10))
		got.Body.Close()
		return nil, fmt.Errorf("ask the namenode for %s: %s: %s", what, got.Status, text)
	}
	return got.Body, nil
}
