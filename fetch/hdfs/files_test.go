package hdfs

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"rankfs/fetch/hdfs/namenode"
)

// Where short-circuit reads are set up in part, it is said what is missing; where they are not, nothing is.
func TestNoSocketIsSaid(t *testing.T) {
	var log bytes.Buffer
	c := &Clusters{config: Config{Log: slog.New(slog.NewTextHandler(&log, nil))}}
	if files, why := c.files(namenode.Data{}); files != nil || !strings.Contains(why, "dfs.client.read.shortcircuit") || log.Len() > 0 {
		t.Errorf("not set up: %q, and the log has %q", why, &log)
	}
	if files, why := c.files(namenode.Data{ByFile: true}); files != nil || !strings.Contains(why, "dfs.domain.socket.path") || !strings.Contains(log.String(), why) {
		t.Errorf("without a socket: %q, and the log has %q", why, &log)
	}
	if files, why := c.files(namenode.Data{ByFile: true, Socket: "run/dn_socket"}); files != nil || !strings.Contains(why, "name an absolute path") || !strings.Contains(log.String(), why) {
		t.Errorf("a relative path: %q, and the log has %q", why, &log)
	}
}
