-- here: what the clock and the session give, as constants of the statement; in writes too.
SELECT current_timestamp = now(), current_date = now()::date, localtimestamp = now()::timestamp, localtime = now()::time;
SELECT current_timestamp(0) = now()::timestamptz(0), localtimestamp(3) = now()::timestamp(3), localtime(1) = now()::time(1);
SELECT current_date - current_date, current_timestamp - now(), localtime - localtime;
SELECT count(*) FROM generate_series(1, 3) WHERE current_date <= now();
