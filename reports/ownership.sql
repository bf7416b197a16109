-- Ownership: what every owner's runs held, and on whose money, per month (UTC).
--
-- class says how the money came: owned (its own), shared (its family's), borrowed (a sponsor's), unfunded (nobody's).
-- GPU-hours are those of the clock: a spare counts whole here.
-- @chart bars x=month y=gpu_hours by=class
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
ORDER BY month, counted(run_owner), run_owner, gpu_hours DESC, class, counted(owner), owner
