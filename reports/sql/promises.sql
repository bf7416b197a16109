-- Promises: how well promised starts were kept, by how far ahead they were made.
--
-- A promise is of the period when its run starts in it, or when it ends in it without a start. Its error is the start of the
-- run's first Active lease less the start first promised; late is above 0. Moved are promises whose time did not stay as it
-- was first promised. ahead is the time from the promise to the start that it promised. by_p90 are those that started by the
-- p90 that was told first: nine of ten, if what is said of sureness is true.
-- @reads everything
-- @check error_seconds = promised by owner:run_owner
WITH made AS (
    SELECT namespace, name, run, min(time) AS made, arg_min(start, time) AS promised,
        arg_min(coalesce(p90, start), time) AS sure
    FROM promises WHERE run IS NOT NULL GROUP BY namespace, name, run
),
ends AS (
    SELECT namespace, name, arg_max(state, time) AS state, max(time) AS ended, count(DISTINCT start) > 1 AS moved
    FROM promises GROUP BY namespace, name
),
starts AS (
    SELECT m.namespace, m.name, min(l.start) AS started, arg_min(l.run_owner, (l.start, l.name)) AS owner
    FROM made AS m
    JOIN ends AS e ON e.namespace = m.namespace AND e.name = m.name
    JOIN leases AS l ON l.namespace = m.namespace AND l.run = m.run AND l.role = 'Active' AND l.start >= m.made
    WHERE e.state IN ('Activated', 'Released')
    GROUP BY m.namespace, m.name
),
named AS (
    SELECT namespace, name, arg_max(owner, last_seen) AS owner FROM runs GROUP BY namespace, name
),
settled AS (
    SELECT
        coalesce(s.owner, n.owner) AS owner,
        m.promised - m.made AS horizon,
        e.moved,
        s.started - m.promised AS error,
        s.started <= m.sure AS in_time,
        coalesce(s.started, e.ended) AS settled
    FROM made AS m
    JOIN ends AS e ON e.namespace = m.namespace AND e.name = m.name
    LEFT JOIN starts AS s ON s.namespace = m.namespace AND s.name = m.name
    LEFT JOIN named AS n ON n.namespace = m.namespace AND n.name = m.run
    WHERE e.state = 'Failed' OR s.started IS NOT NULL -- else it still waits for the pods of victims
),
counted_in AS (
    SELECT
        *,
        CASE
            WHEN horizon <= 3600 THEN 'an hour'
            WHEN horizon <= 21600 THEN '6 hours'
            WHEN horizon <= 86400 THEN 'a day'
            ELSE 'more'
        END AS ahead,
        CASE WHEN horizon <= 3600 THEN 1 WHEN horizon <= 21600 THEN 2 WHEN horizon <= 86400 THEN 3 ELSE 4 END AS place
    FROM settled
    WHERE settled >= getvariable('since') AND settled < getvariable('stop')
)
SELECT
    owner,
    ahead,
    count(*) AS promises,
    count(error) AS kept,
    count(*) - count(error) AS given_up,
    count(*) FILTER (moved) AS moved,
    count(*) FILTER (error > 0) AS late,
    count(*) FILTER (in_time) AS by_p90,
    quantile_disc(error, 0.5) AS error_seconds_p50,
    quantile_disc(error, 0.9) AS error_seconds_p90,
    max(error) AS error_seconds_worst,
    coalesce(sum(error), 0)::BIGINT AS error_seconds
FROM counted_in
GROUP BY owner, ahead, place
ORDER BY counted(owner), owner, place;

-- @lead
WITH sums AS (
    SELECT sum(promises) AS promises, sum(kept) AS kept, sum(late) AS late, max(error_seconds_worst) AS worst,
        arg_max(owner, error_seconds_worst) AS whose
    FROM report
)
SELECT CASE
    WHEN coalesce(promises, 0) = 0 THEN 'No promise was settled in this period.'
    ELSE number(kept) || ' of ' || counted_as(promises, 'promise')
        || ' ended in a start, '
        || CASE
            WHEN late = 0 THEN 'none of them later than first promised.'
            ELSE number(late) || ' of them later than first promised; the worst by ' || span(worst) || ', of ' || whose || '.'
        END
END
FROM sums;

-- @figures
SELECT 'Kept' AS label, share(sum(kept), sum(promises)) AS value, counted_as(sum(promises), 'promise') AS note
FROM report HAVING count(*) > 0
UNION ALL
SELECT 'On time', share(sum(kept) - sum(late), sum(kept)), 'of those that ended in a start'
FROM report HAVING sum(kept) > 0
UNION ALL
SELECT 'By their p90', share(sum(by_p90), sum(kept)), 'of those that ended in a start; nine of ten are meant'
FROM report HAVING sum(kept) > 0
UNION ALL
SELECT 'Latest', span(max(error_seconds_worst)), arg_max(owner, error_seconds_worst)
FROM report HAVING max(error_seconds_worst) > 0;

-- @chart across: Promises by owner: kept on time, late, given up
SELECT owner AS label, sum(count)::DOUBLE AS y, series
FROM (
    SELECT owner, kept - late AS count, 'on time' AS series FROM report
    UNION ALL SELECT owner, late, 'late' FROM report
    UNION ALL SELECT owner, given_up, 'given up' FROM report
)
GROUP BY owner, series
HAVING sum(count) > 0
ORDER BY y DESC, label, series;

-- @table sum=Promises, Kept, Late, Moved, Given up
SELECT
    owner AS "Owner",
    ahead AS "Within",
    promises AS "Promises",
    kept AS "Kept",
    late AS "Late",
    moved AS "Moved",
    given_up AS "Given up",
    to_seconds(greatest(error_seconds_p50, 0)) AS "Half late by at most",
    to_seconds(greatest(error_seconds_p90, 0)) AS "Nine of ten"
FROM report
