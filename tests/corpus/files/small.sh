# Write servers.ndjson and rows.csv. Times are offsets from 2026-03-01T12:00Z.
H=3600000 D='24*H'

records() { # ID...
    : > servers.ndjson
    for id; do record "$id"; done
}

record() { # ID [HOSTNAME [MORE FIELDS]]
    printf '{"id":"%s","cfxId":"x-%s","game":"game_a","hostname":"%s"%s}\n' \
        "$1" "$1" "${2-$1}" "${3:+,$3}" >> servers.ndjson
}

rows() { # 'ID MILLISECONDS COUNT'...
    echo serverId,observedAt,players > rows.csv
    for row; do
        set -- $row
        echo "$1,$((1772366400000 + $2)),$(($3))" >> rows.csv
    done
}

hours() { # ID FROM TO COUNT: at each hour from FROM to before TO hours ago; `h` is that of the day
    for ((ago = $2; ago < $3; ago++)); do
        h=$(((12 - ago % 24 + 24) % 24))
        echo "$1,$((1772366400000 - ago * H)),$(($4))"
    done >> rows.csv
}
