package cluster

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"rankfs/test/cluster/internal/site"
)

// SetReplication has there be n replicas of each block of a file, after a while.
func (c *Cluster) SetReplication(ctx context.Context, file string, n int) error {
	return c.change(ctx, file, fmt.Sprint("SETREPLICATION&replication=", n))
}

// SetCode has what is written to a directory be erasure-coded by a policy from now on.
func (c *Cluster) SetCode(ctx context.Context, dir, policy string) error {
	if err := c.change(ctx, "/", "ENABLEECPOLICY&ecpolicy="+policy); err != nil {
		return err
	}
	return c.change(ctx, dir, "SETECPOLICY&ecpolicy="+policy)
}

func (c *Cluster) change(ctx context.Context, file, operation string) error {
	answer, err := c.web(ctx, http.MethodPut, file, operation)
	if err != nil {
		return err
	}
	return answer.Close()
}

// web has the active namenode do an operation of WebHDFS, with its parameters. A program
// of Hadoop's would take seconds to begin.
func (c *Cluster) web(ctx context.Context, method, file, operation string) (answer io.ReadCloser, err error) {
	active, err := c.Active(ctx)
	if err != nil {
		return nil, err
	}
	url := fmt.Sprintf("http://%s:%d/webhdfs/v1%s?user.name=root&op=%s", active.Name, site.NameHTTP, file, operation)
	request, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return nil, err
	}
	client := http.Client{Transport: &http.Transport{DialContext: active.DialContext, DisableKeepAlives: true}}
	got, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	if got.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(got.Body, 1<<10))
		got.Body.Close()
		return nil, fmt.Errorf("have the namenode do %s of %s: %s: %s", operation, file, got.Status, text)
	}
	return got.Body, nil
}
