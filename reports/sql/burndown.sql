-- Burndown: what was left of every envelope's hours, step by step, in its present window.
--
-- Left is what remained of the cap that the envelope had then, 0 where less than nothing did: an edit of a cap is a step of
-- the dashed line. Caps before the lake's first cycle are not known. Envelopes without a cap have nothing to burn down. The
-- report on usage says when the rest runs out.
-- @reads everything
-- @check milli_gpu_seconds = window by budget, name:envelope
WITH steps AS (
    SELECT
        unnest(generate_series(
            getvariable('since') // getvariable('bucket') * getvariable('bucket'),
            getvariable('until') - 1,
            getvariable('bucket')
        )) AS step,
        least(step + getvariable('bucket'), getvariable('until')) AS step_end
),
windows AS (
    SELECT budget, name, owner, flavor, coalesce(start, getvariable('begin')) AS start, "end" FROM payers
),
caps AS (
    -- The cap of each step's end: that of its own time, since a later edit changes nothing of the past.
    SELECT w.budget, w.name, s.step, e.max_gpu_milliseconds
    FROM windows AS w
    CROSS JOIN steps AS s
    ASOF LEFT JOIN envelopes_history AS e ON e.budget = w.budget AND e.name = w.name AND s.step_end >= e.since
),
parts AS (
    -- What was charged before the first step counts in it.
    SELECT
        l.budget,
        l.envelope,
        s.step,
        l.milli_gpus * greatest(
            0,
            least(l.ended, s.step_end)
            - greatest(l.began, w.start, CASE WHEN s.step <= getvariable('since') THEN 0 ELSE s.step END)
        ) AS charge,
        l.milli_gpus * greatest(0, least(l.ended, s.step_end) - greatest(l.began, w.start, s.step, getvariable('since')))
            AS inside
    FROM paid AS l
    JOIN windows AS w ON w.budget = l.budget AND w.name = l.envelope AND w.owner = l.owner AND w.flavor = l.flavor
    JOIN steps AS s ON l.began < s.step_end AND (l.ended > s.step OR s.step <= getvariable('since'))
),
spent AS (
    SELECT budget, envelope, step, sum(charge) AS charge, sum(inside) AS inside FROM parts GROUP BY ALL
)
SELECT
    iso(s.step) AS time,
    iso(s.step_end) AS until,
    w.budget || '/' || w.name AS envelope,
    w.owner,
    w.budget,
    w.name,
    w.flavor,
    coalesce(p.inside, 0)::BIGINT / 3600000 AS gpu_hours_spent,
    (sum(coalesce(p.charge, 0)) OVER sofar)::BIGINT / 3600000 AS gpu_hours_spent_so_far,
    c.max_gpu_milliseconds / 3600000 AS max_gpu_hours,
    CASE
        WHEN c.max_gpu_milliseconds IS NOT NULL
            THEN greatest(0, c.max_gpu_milliseconds - sum(coalesce(p.charge, 0)) OVER sofar)::DOUBLE / 3600000
    END AS gpu_hours_left,
    iso(w."end") AS window_ends,
    coalesce(p.charge, 0)::BIGINT AS milli_gpu_seconds
FROM steps AS s
CROSS JOIN windows AS w
JOIN caps AS c ON c.budget = w.budget AND c.name = w.name AND c.step = s.step
LEFT JOIN spent AS p ON p.budget = w.budget AND p.envelope = w.name AND p.step = s.step
WHERE s.step_end > w.start OR p.charge > 0
WINDOW sofar AS (PARTITION BY w.budget, w.name ORDER BY s.step)
ORDER BY s.step, counted(w.budget), counted(w.name), w.budget, w.name;

-- @lead
WITH ends AS (
    SELECT *, row_number() OVER (PARTITION BY envelope ORDER BY time DESC) AS place FROM report
),
edits AS (
    SELECT envelope, time, max_gpu_hours, lag(max_gpu_hours) OVER (PARTITION BY envelope ORDER BY time) AS earlier
    FROM report
),
now AS (
    SELECT
        count(*) AS envelopes,
        sum(gpu_hours_left) AS hours_left,
        sum(max_gpu_hours) AS cap,
        count(*) FILTER (gpu_hours_left = 0) AS empty,
        arg_min(envelope, (gpu_hours_left / nullif(max_gpu_hours, 0), envelope)) AS lowest,
        min(gpu_hours_left / nullif(max_gpu_hours, 0)) AS lowest_part,
        list(envelope ORDER BY envelope) FILTER (window_ends <= iso(getvariable('until'))) AS closed,
        max(epoch(window_ends::TIMESTAMP)::BIGINT) FILTER (window_ends <= iso(getvariable('until'))) AS closed_at,
        sum(gpu_hours_left) FILTER (window_ends <= iso(getvariable('until'))) AS unused
    FROM ends WHERE place = 1 AND max_gpu_hours IS NOT NULL
)
SELECT CASE
    WHEN envelopes = 0 THEN 'No envelope has a cap of GPU-hours.'
    ELSE number(hours_left) || ' of ' || number(cap) || ' GPU-hours (' || share(hours_left, cap) || ') are left.'
END AS lead, CASE
    WHEN envelopes = 0 THEN ''
    WHEN empty = 1 THEN 'Nothing is left of ' || lowest || '.'
    WHEN empty > 1 THEN 'Nothing is left of ' || number(empty) || ' envelopes.'
    ELSE 'Least is left of ' || lowest || ': ' || share(lowest_part, 1) || ' of its cap.'
END AS lowest, windows_closed(closed, closed_at, unused) AS windows, (
    SELECT CASE
        WHEN count(*) = 1 THEN 'The cap of ' || any_value(envelope) || ' was edited from '
            || number(any_value(earlier)) || ' to ' || number(any_value(max_gpu_hours)) || ' GPU-hours on '
            || day(epoch(any_value(time)::TIMESTAMP)) || '.'
        WHEN count(*) > 1 THEN 'Caps were edited ' || count(*) || ' times: a step of the dashed line.'
    END
    FROM edits WHERE earlier <> max_gpu_hours
) AS edits
FROM now;

-- @figures
WITH ends AS (
    SELECT *, row_number() OVER (PARTITION BY envelope ORDER BY time DESC) AS place FROM report
),
now AS (
    SELECT sum(gpu_hours_left) AS hours_left, sum(max_gpu_hours) AS cap,
        min(window_ends) FILTER (window_ends > iso(getvariable('until'))) AS closes,
        arg_min(envelope, window_ends) FILTER (window_ends > iso(getvariable('until'))) AS first_closed
    FROM ends WHERE place = 1
)
SELECT 'Left' AS label, number(hours_left) || ' GPU-hours' AS value, 'of ' || number(cap) || ' under caps' AS note
FROM now WHERE cap IS NOT NULL
UNION ALL
SELECT 'Spent', number(sum(gpu_hours_spent)) || ' GPU-hours', 'in this period' FROM report
UNION ALL
SELECT 'Most by', arg_max(owner, spent), number(max(spent)) || ' GPU-hours'
FROM (SELECT owner, sum(gpu_hours_spent) AS spent FROM report GROUP BY owner)
HAVING max(spent) > 0
UNION ALL
SELECT 'Next window to end', day(epoch(closes::TIMESTAMP)), first_closed FROM now WHERE closes IS NOT NULL;

-- @chart lines: GPU-hours left of each envelope, least first; dashed, its cap
SELECT envelope AS panel, until::TIMESTAMP AS x, gpu_hours_left AS y, max_gpu_hours AS bound
FROM report
WHERE gpu_hours_left IS NOT NULL
ORDER BY
    last_value(gpu_hours_left / nullif(max_gpu_hours, 0) ORDER BY time) OVER (PARTITION BY envelope) NULLS LAST,
    envelope, time;

-- @table tree sum=Spent in the period, Spent in the window, Cap, GPU-hours left
SELECT
    owner AS "Owner",
    envelope AS "Envelope",
    any_value(flavor) AS "GPUs",
    sum(gpu_hours_spent) AS "Spent in the period",
    arg_max(gpu_hours_spent_so_far, time) AS "Spent in the window",
    max_by(max_gpu_hours, time) AS "Cap",
    max_by(gpu_hours_left, time) AS "GPU-hours left",
    any_value(window_ends)::TIMESTAMP AS "Window ends"
FROM report
GROUP BY owner, envelope
