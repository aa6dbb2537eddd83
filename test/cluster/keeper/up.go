package main

func up(args []string) error   { return nil }
func down(args []string) error { return nil }
