-- Ownership: what every owner's runs held, and on whose money, per month (UTC).
--
-- Own money is class owned, the family's shared, a sponsor's borrowed, nobody's unfunded. GPU-hours are those of the clock: a
-- spare counts whole here.
-- @owner run_owner
-- @check gpu_seconds = held by month, run_owner, owner, class
SELECT
    month,
    run_owner,
    class,
    owner,
    CASE WHEN class = 'unfunded' THEN NULL ELSE owner END AS paid_by,
    sum(gpus * seconds)::BIGINT / 3600 AS gpu_hours,
    100 * gpu_hours / sum(sum(gpus * seconds)::BIGINT / 3600) OVER (PARTITION BY month, run_owner) AS percent_of_owner,
    sum(gpus * seconds)::BIGINT AS gpu_seconds
FROM monthly
GROUP BY month, run_owner, class, owner
ORDER BY month, counted(run_owner), run_owner, gpu_hours DESC, class, counted(owner), owner;

-- @lead
WITH sums AS (
    SELECT
        sum(gpu_hours) AS hours,
        sum(gpu_hours) FILTER (class = 'owned') AS own,
        sum(gpu_hours) FILTER (class = 'unfunded') AS unpaid
    FROM report
)
SELECT CASE
    WHEN hours IS NULL THEN 'No run held a GPU in this period.'
    ELSE share(own, hours) || ' of the ' || number(hours) || ' GPU-hours that runs held were on their owners'' own money'
        || CASE WHEN unpaid > 0 THEN '; nobody paid for ' || share(unpaid, hours) || ' of them.' ELSE '.' END
END
FROM sums;

-- @figures
SELECT
    CASE class WHEN 'owned' THEN 'Own money' WHEN 'shared' THEN 'Family''s money' WHEN 'borrowed' THEN 'Sponsors'' money'
        ELSE 'Nobody''s money' END AS label,
    number(sum(gpu_hours)) || ' GPU-hours' AS value,
    concat_ws(
        ', ',
        share(sum(gpu_hours), (SELECT sum(gpu_hours) FROM report)) || ' of all',
        nullif(change(sum(gpu_hours), (SELECT sum(b.gpu_hours) FROM before AS b WHERE b.class = report.class)), '')
    ) AS note
FROM report
GROUP BY class
ORDER BY sum(gpu_hours) DESC;

-- @chart across: GPU-hours held, by the owner of the run and whose money it was
SELECT
    run_owner AS label,
    sum(gpu_hours) AS y,
    CASE class WHEN 'owned' THEN 'own' WHEN 'shared' THEN 'family''s' WHEN 'borrowed' THEN 'sponsors''' ELSE 'nobody''s' END
        AS series
FROM report
GROUP BY run_owner, class
ORDER BY sum(sum(gpu_hours)) OVER (PARTITION BY run_owner) DESC, label, list_position(['owned', 'shared', 'borrowed'], class);

-- @table tree sum=GPU-hours held, Own money, Family's, Sponsors', Nobody's
SELECT
    run_owner AS "Owner",
    CASE WHEN count(*) OVER (PARTITION BY run_owner) > 1 THEN strftime(strptime(month, '%Y-%m'), '%b %Y') END AS "Month",
    sum(gpu_hours) AS "GPU-hours held",
    sum(gpu_hours) FILTER (class = 'owned') AS "Own money",
    sum(gpu_hours) FILTER (class = 'shared') AS "Family's",
    sum(gpu_hours) FILTER (class = 'borrowed') AS "Sponsors'",
    sum(gpu_hours) FILTER (class = 'unfunded') AS "Nobody's",
    string_agg(DISTINCT paid_by, ', ' ORDER BY paid_by) FILTER (class IN ('shared', 'borrowed')) AS "Others who paid"
FROM report
GROUP BY run_owner, month
ORDER BY run_owner, strptime(month, '%Y-%m') -- as a time: alone it would be "Month", a name
