package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"rankfs/test/cluster/internal/netns"
	"rankfs/test/cluster/internal/site"
	"rankfs/test/hadoop"
)

// tools are Hadoop's programs by the words that people know.
var tools = map[string]string{
	"dfs":      "org.apache.hadoop.fs.FsShell",
	"dfsadmin": "org.apache.hadoop.hdfs.tools.DFSAdmin",
	"haadmin":  "org.apache.hadoop.hdfs.tools.DFSHAAdmin",
	"fsck":     "org.apache.hadoop.hdfs.tools.DFSck",
	"ec":       "org.apache.hadoop.hdfs.tools.ECAdmin",
	"getconf":  "org.apache.hadoop.hdfs.tools.GetConf",
}

// here is the cluster that this program lies in the folder of.
func here() (*site.Site, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s, err := site.Load(filepath.Dir(self))
	if err != nil {
		return nil, fmt.Errorf("find the cluster of %s: %w; start one with `make hdfs-up`", self, err)
	}
	return s, nil
}

// on becomes a command, or a shell, on a host of the cluster. There, hdfs is
// found as a command.
func on(args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	s, err := here()
	if err != nil {
		return err
	}
	h, err := s.Host(args[0])
	if err != nil {
		return err
	}
	line := args[1:]
	if len(line) == 0 {
		line = []string{"bash"}
	}
	dir := s.HostDir(h.Name)
	own := map[string]string{
		"TMPDIR":          filepath.Join(dir, "tmp"),
		"PATH":            s.Bin() + ":" + os.Getenv("PATH"),
		"HADOOP_CONF_DIR": s.Conf(),
	}
	for name, value := range own {
		os.Setenv(name, value)
	}
	return netns.Exec(h.Pid, line, os.Environ())
}

// hdfs becomes one of Hadoop's programs, on whatever host this is.
func hdfs(args []string) error {
	if len(args) == 0 || tools[args[0]] == "" {
		return fmt.Errorf("use hdfs %s ARGUMENTS", strings.Join(slices.Sorted(maps.Keys(tools)), "|"))
	}
	s, err := here()
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	line := s.Java(host, hadoop.ToolOptions, tools[args[0]], args[1:]...)
	java, err := exec.LookPath(line[0])
	if err != nil {
		return err
	}
	return unix.Exec(java, line, os.Environ())
}
