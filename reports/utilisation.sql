-- Utilisation: how full every domain was over time, and how broken its free GPUs were.
--
-- Means over each step. held: GPUs of Active leases; standby: of spares alone; foreign: of pods that are no run's; stopped:
-- idle on nodes that take nothing new (cordoned, not Ready, out of service); free: the rest. broken is the part of free
-- that lies on nodes partly held, where no pod of a whole node fits: fragmentation is broken of free. How many GPUs there
-- were is known from the first cycle on.
-- @chart bars x=time y=held by=domain
-- @chart bars x=time y=broken by=domain
-- @check held_gpu_seconds = active
SELECT
    iso(step) AS time,
    domain,
    nullif(sum(gpus * seconds), 0)::DOUBLE / max(length) AS gpus,
    sum(active * seconds)::DOUBLE / max(length) AS held,
    sum(standby * seconds)::DOUBLE / max(length) AS standby,
    sum(foreign_pods * seconds)::DOUBLE / max(length) AS "foreign",
    sum(stopped * seconds)::DOUBLE / max(length) AS stopped,
    sum(free * seconds)::DOUBLE / max(length) AS free,
    sum(broken * seconds)::DOUBLE / max(length) AS broken,
    100 * sum(active * seconds)::DOUBLE / nullif(sum(gpus * seconds), 0) AS utilisation_percent,
    100 * sum(broken * seconds)::DOUBLE / nullif(sum(free * seconds), 0) AS fragmentation_percent,
    sum(active * seconds)::BIGINT AS held_gpu_seconds
FROM (
    SELECT
        *,
        least(step + getvariable('bucket'), getvariable('until')) - greatest(step, getvariable('since')) AS length
    FROM room
)
GROUP BY step, domain
ORDER BY step, counted(domain), domain
