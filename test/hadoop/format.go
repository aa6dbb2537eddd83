package hadoop

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Format makes a folder that of a namenode which knows of no file: a copy of one that is
// made once for all jars, as a program of Java takes two seconds of a processor. Who calls
// it has the Turn.
func (h Home) Format(ctx context.Context, dir string) error {
	jars, err := os.ReadFile(filepath.Join(string(h), "jars"))
	if err != nil {
		return err
	}
	made := filepath.Join(string(h), "namespace-"+strings.TrimSpace(string(jars)))
	if _, err := os.Stat(made); errors.Is(err, fs.ErrNotExist) {
		if err := h.format(ctx, made); err != nil {
			return err
		}
	}
	return os.CopyFS(dir, os.DirFS(made))
}

func (h Home) format(ctx context.Context, made string) error {
	next := made + ".next"
	if err := os.RemoveAll(next); err != nil {
		return err
	}
	line := h.Line("", ToolOptions, "org.apache.hadoop.hdfs.server.namenode.NameNode", "-D", "fs.defaultFS=hdfs://localhost",
		"-D", "dfs.namenode.name.dir=file://"+next, "-format", "-force", "-nonInteractive")
	if out, err := exec.CommandContext(ctx, line[0], line[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("format a namenode: %w: %s", err, out)
	}
	return os.Rename(next, made)
}
