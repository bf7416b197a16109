-- How a report's sentences and headline figures say what they count. Each gives a text.

-- number: thousands apart, one decimal where it is small and has one.
CREATE MACRO number(x) AS CASE
    WHEN x IS NULL THEN '-'
    WHEN abs(x) >= 100 OR round(x, 1) = round(x) THEN format('{:,}', round(x)::BIGINT)
    ELSE format('{:,.1f}', round(x, 1)::DOUBLE)
END;

-- money: an amount to the hundredth.
CREATE MACRO money(x) AS format('{:,.2f}', x::DOUBLE);

-- counted_as: a number and its noun, as `1 run` and `2 runs`.
CREATE MACRO counted_as(x, noun) AS number(x) || ' ' || noun || CASE WHEN x = 1 THEN '' ELSE 's' END;

-- share: a part of a whole, as `79%`.
CREATE MACRO share(part, whole) AS CASE
    WHEN coalesce(whole, 0) = 0 THEN '-'
    WHEN part > 0 AND 100 * part / whole < 1 THEN 'less than 1%'
    ELSE format('{:.0f}%', (100 * part / whole)::DOUBLE)
END;

-- span: a length of time, as `2h 10m`.
CREATE MACRO span(seconds) AS CASE
    WHEN seconds IS NULL THEN '-'
    WHEN seconds < 60 THEN seconds::BIGINT || 's'
    WHEN seconds < 3600 THEN seconds::BIGINT // 60 || 'm'
    WHEN seconds < 86400
        THEN seconds::BIGINT // 3600 || 'h' || coalesce(' ' || nullif(seconds::BIGINT % 3600 // 60, 0) || 'm', '')
    ELSE seconds::BIGINT // 86400 || 'd' || coalesce(' ' || nullif(seconds::BIGINT % 86400 // 3600, 0) || 'h', '')
END;

-- day: a time, Unix seconds, as `1 Nov 2025`. moment: the same for tables, which show it to the minute.
CREATE MACRO day(seconds) AS strftime(make_timestamp(seconds::BIGINT * 1000000), '%-d %b %Y');
CREATE MACRO moment(seconds) AS make_timestamp(seconds::BIGINT * 1000000);

-- listed: names as `a, b and c`, of more than four the rest counted.
CREATE MACRO listed(names) AS CASE
    WHEN len(names) <= 1 THEN names[1]
    WHEN len(names) <= 4 THEN array_to_string(names[:-2], ', ') || ' and ' || names[-1]
    ELSE array_to_string(names[:3], ', ') || ' and ' || (len(names) - 3) || ' more'
END;

-- windows_closed: windows of these envelopes, names, that are over, the last one since latest, Unix seconds; unused: what
-- GPU-hours are left in them.
CREATE MACRO windows_closed(names, latest, unused) AS CASE WHEN len(names) > 0 THEN
    CASE WHEN len(names) = 1 THEN 'The window of ' || names[1] || ' ended on '
        ELSE 'The windows of ' || listed(names) || ' are over, the last one ended on ' END
    || day(latest) || CASE WHEN latest % 86400 > 0 THEN strftime(moment(latest), ', %H:%M') ELSE '' END
    || CASE WHEN len(names) = 1 THEN ': it pays no more' ELSE ': they pay no more' END
    || CASE WHEN unused > 0 THEN ', and ' || counted_as(unused, 'GPU-hour') || ' stay unused' ELSE '' END || '.'
END;

-- change: how a figure stands to that of the period before; empty where there was none.
CREATE MACRO change(now, earlier) AS CASE
    WHEN coalesce(earlier, 0) = 0 THEN ''
    WHEN round(100 * abs(now - earlier) / earlier) = 0 THEN 'as in the period before'
    ELSE format('{:.0f}%', (100 * abs(now - earlier) / earlier)::DOUBLE)
        || CASE WHEN now > earlier THEN ' more' ELSE ' less' END || ' than in the period before'
END;

-- asked: whether an owner is of those that the report was asked for (--owner).
CREATE MACRO asked(name) AS coalesce(list_contains(getvariable('owners'), name), getvariable('owners') IS NULL);

-- by_step: the rows of a view with began and ended, such as charges, cut at the steps of a chart with few enough bars;
-- step: the begin of one, step_end its end, Unix seconds.
CREATE MACRO by_step(name) AS TABLE (
    SELECT
        *,
        unnest(generate_series(
            greatest(began, getvariable('since')) // getvariable('bar') * getvariable('bar'),
            ended - 1,
            getvariable('bar')
        )) AS step,
        step + getvariable('bar') AS step_end,
        greatest(0, least(ended, step_end) - greatest(began, step, getvariable('since'))) AS seconds
    FROM query_table(name)
    WHERE ended > greatest(began, getvariable('since'))
);
