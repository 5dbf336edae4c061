module compare_servers

go 1.18
