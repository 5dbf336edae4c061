"""Campaigns: each tests one promise of srvstat with many cases, in a short and a long form."""
