-- Chargeback: what every owner pays for, per month (UTC).
--
-- An owner pays for what its envelopes carried, whoever ran there. Unfunded time is charged to nobody.
-- @check milli_gpu_seconds = charges by month, owner, flavor
-- @check credits = credits by month, owner, flavor
SELECT
    month,
    owner,
    flavor,
    sum(milli_gpu_seconds)::BIGINT / 3600000 AS gpu_hours,
    coalesce(sum(milli_gpu_seconds) FILTER (class = 'owned'), 0)::BIGINT / 3600000 AS owned_gpu_hours,
    coalesce(sum(milli_gpu_seconds) FILTER (class = 'shared'), 0)::BIGINT / 3600000 AS shared_gpu_hours,
    coalesce(sum(milli_gpu_seconds) FILTER (class = 'borrowed'), 0)::BIGINT / 3600000 AS borrowed_gpu_hours,
    coalesce(sum(milli_gpu_seconds) FILTER (role = 'Spare'), 0)::BIGINT / 3600000 AS spare_gpu_hours,
    sum(milli_gpu_seconds_rated)::DOUBLE / 3.6e9 AS credits,
    sum(milli_gpu_seconds)::BIGINT AS milli_gpu_seconds
FROM charges
GROUP BY ALL
ORDER BY month, gpu_hours DESC, owner, flavor;

-- @lead
WITH owners AS (
    SELECT owner, sum(gpu_hours) AS hours FROM report GROUP BY owner
),
sums AS (
    SELECT sum(hours) AS hours, count(*) AS owners, max(hours) AS most, arg_max(owner, hours) AS first FROM owners
)
SELECT CASE
    WHEN owners = 0 THEN 'Nothing was charged in this period.'
    WHEN owners = 1 THEN first || ' is charged ' || counted_as(hours, 'GPU-hour') || '.'
    ELSE counted_as(hours, 'GPU-hour') || ' are charged to ' || counted_as(owners, 'owner') || '; most to ' || first
        || ', which pays for ' || share(most, hours) || ' of them.'
END
FROM sums;

-- @figures
SELECT 'Charged' AS label, number(coalesce(sum(gpu_hours), 0)) || ' GPU-hours' AS value,
    change(sum(gpu_hours), (SELECT sum(gpu_hours) FROM before)) AS note
FROM report
UNION ALL
SELECT 'Credits', number(sum(credits)), change(sum(credits), (SELECT sum(credits) FROM before))
FROM report HAVING sum(credits) > 0
UNION ALL
SELECT 'Lent to others', number(sum(borrowed_gpu_hours)) || ' GPU-hours',
    share(sum(borrowed_gpu_hours), sum(gpu_hours)) || ' of what is charged'
FROM report HAVING sum(borrowed_gpu_hours) > 0
UNION ALL
SELECT 'Most by', arg_max(owner, hours), number(max(hours)) || ' GPU-hours'
FROM (SELECT owner, sum(gpu_hours) AS hours FROM report GROUP BY owner)
HAVING count(*) > 0;

-- @chart bars: GPU-hours charged, by the owner who pays
SELECT moment(step) AS x, moment(step_end) AS x2, sum(milli_gpus * seconds) / 3600000 AS y, owner AS series
FROM by_step('paid')
WHERE asked(owner) AND seconds > 0
GROUP BY step, step_end, owner
ORDER BY sum(sum(milli_gpus * seconds)) OVER (PARTITION BY owner) DESC, owner, x;

-- @table tree sum=GPU-hours, Own runs, Family, Lent, Standby, Credits
SELECT
    owner AS "Owner",
    CASE WHEN count(*) OVER (PARTITION BY owner) > 1 THEN strftime(strptime(month, '%Y-%m'), '%b %Y') || ', ' || flavor END
        AS "Month",
    gpu_hours AS "GPU-hours",
    nullif(owned_gpu_hours, 0) AS "Own runs",
    nullif(shared_gpu_hours, 0) AS "Family",
    nullif(borrowed_gpu_hours, 0) AS "Lent",
    nullif(spare_gpu_hours, 0) AS "Standby",
    nullif(credits, 0) AS "Credits"
FROM report
ORDER BY owner, strptime(month, '%Y-%m'), flavor -- as a time: alone it would be "Month", a name
