"""The Helm chart on a real API server: installed, planning as its own account, upgraded, rolled back, taken away."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from jobtree.api import API_VERSION
from jobtree.api.crds.crds import generate
from tests.kube.bench import build, processes, tools
from tests.kube.bench.kube import Kube, Object, names
from tests.kube.conftest import skip_or_fail
from tests.kube.helm import CHART, NAMESPACE, ROOT, Container, Helm, container, rendered
from tests.kube.live import budget, run

EVERYTHING = ("metrics.serviceMonitor.enabled=true", "metrics.rules.enabled=true", "metrics.dashboard.enabled=true")
RELEASED = (
    ("v1", "ServiceAccount"), ("v1", "ConfigMap"), ("v1", "Service"), ("batch/v1", "CronJob"),
    ("apps/v1", "Deployment"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"), ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
    ("rbac.authorization.k8s.io/v1", "Role"), ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"),
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding"),
)  # fmt: skip
EARLIER = Path(__file__).parent / "earlier"
"""The CRDs of the first chart, before its first change."""
OPERATORS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %(plural)s.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  names: {kind: %(kind)s, plural: %(plural)s}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
"""The Prometheus Operator's kinds; what they hold is its own to check."""


@pytest.fixture(scope="module")
def bare() -> Iterator[Kube]:
    """A bench without our CRDs, controllers and kubelets."""
    found = {**build.find(), **tools.find()}
    skip_or_fail(name for name in (*processes.THIN, "helm", "kubectl") if name not in found)
    with processes.running(build.find(), thin=True) as running:
        kube = Kube(running, crds=False)
        kube.namespace(NAMESPACE)
        kube.namespace("default")
        yield kube
        kube.close()


@pytest.fixture
def helm(bare: Kube, tmp_path: Path) -> Iterator[Helm]:
    """helm; after the test nothing of the chart is left, the CRDs neither."""
    helm = Helm(bare, tmp_path)
    yield helm
    helm("uninstall", "jobtree", "--ignore-not-found")
    finished = [(API_VERSION, "Run"), (API_VERSION, "Lease")] if _has_crds(bare) else []
    for version, kind in (*finished, ("v1", "PersistentVolumeClaim")):  # nobody is there who would take them off
        for each in bare.objects(version, kind):
            off: Object = {"metadata": {"finalizers": None}}
            bare.patch(version, kind, each["metadata"]["namespace"], each["metadata"]["name"], off)
    left = [each["metadata"]["name"] for each in _crds(bare)]
    helm.kubectl("delete", "crd", "--wait=false", "--ignore-not-found", "none", *left)
    helm.kubectl("delete", "configmap,persistentvolumeclaim,node", "--all", "--namespace", NAMESPACE)
    helm.kubectl("delete", "pod,service", "--all", "--namespace", "default", "--force")
    bare.until(lambda: not _crds(bare), within=400)  # the server begins anew, ever later, where it was too early


def _crds(kube: Kube) -> list[Object]:
    found = kube.objects("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    return [each for each in found if each["spec"]["group"].endswith(("davidlangworthy.io", "coreos.com"))]


def _has_crds(kube: Kube) -> bool:
    return any(each["spec"]["group"] == "rq.davidlangworthy.io" for each in _crds(kube))


def _ready(kube: Kube) -> None:
    """Waits until all CRDs are served."""
    kube.until(lambda: all(
        any(each["type"] == "Established" and each["status"] == "True" for each in crd["status"]["conditions"])
        for crd in _crds(kube)
    ))  # fmt: skip


def _released(kube: Kube) -> list[str]:
    """Objects of the release, by kind and name."""
    found = [(kind, each["metadata"]) for version, kind in RELEASED for each in kube.objects(version, kind)]
    return sorted(f"{kind} {meta['name']}" for kind, meta in found if _is_released(meta))


def _is_released(meta: Object) -> bool:
    return "jobtree" in meta["name"] or meta.get("labels", {}).get("app.kubernetes.io/managed-by") == "Helm"


def _planner(kube: Kube, folder: Path) -> Container:
    return container(kube, "CronJob", "jobtree-cycle", folder)


def test_every_manifest_is_taken_by_the_server(bare: Kube, helm: Helm) -> None:
    helm("install", "jobtree", CHART)
    for kind, plural in (("ServiceMonitor", "servicemonitors"), ("PrometheusRule", "prometheusrules")):
        helm.kubectl("apply", "-f", "-", stdin=OPERATORS % {"kind": kind, "plural": plural})
    _ready(bare)
    text = rendered(*EVERYTHING)
    wanted = [each for each in yaml.safe_load_all(text) if each]

    said = helm.kubectl(
        "apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "-f", "-", stdin=text
    ).stdout

    assert len(said.splitlines()) == len(wanted)
    assert all(line.endswith("serverside-applied (server dry run)") for line in said.splitlines())


def test_the_planner_of_the_chart_plans_as_its_own_account(bare: Kube, helm: Helm, tmp_path: Path) -> None:
    said = helm("install", "jobtree", CHART).stdout
    assert "kubectl get policies,budgets" in said
    assert bare.get(API_VERSION, "Policy", "", "default")["spec"] == {"tenancy": {"requireBinding": True}}
    bare.nodes(1)
    pool = budget("org:a", 8)
    pool["spec"]["namespaces"] = ["default"]
    bare.create(pool, run("train", 8), run("stranger", 8, owner="org:b"))
    planner = _planner(bare, tmp_path)
    assert planner.args[:5] == ["cycle", "--every", "10s", "--for", "50s"]

    done = planner.run("cycle", "--every", "1s", "--for", "1s", *planner.args[5:])

    assert done.stdout.splitlines()[0].split(": ", 1)[1].startswith("1 run starts, 1 waits")
    assert "Forbidden" not in done.stderr
    statuses = {each["metadata"]["name"]: each["status"] for each in bare.ours("Run")}
    assert {name: status["phase"] for name, status in statuses.items()} == {"train": "Running", "stranger": "Pending"}
    assert {each["reason"] for each in statuses["stranger"]["conditions"] if each["type"] == "Admitted"} == {
        "OwnerNotAllowed"
    }
    assert [each["status"]["phase"] for each in bare.ours("Plan")][:1] == ["Applied"]
    assert len(bare.objects("v1", "Pod")) == 1

    nightly = container(bare, "CronJob", "jobtree-nightly", tmp_path).run()
    assert nightly.stdout.splitlines()[0].startswith("Nothing to compact before ")
    assert "reports/" in nightly.stdout


def test_the_lock_keeps_a_second_planner_away(bare: Kube, helm: Helm, tmp_path: Path) -> None:
    helm("install", "jobtree", CHART)
    planner = _planner(bare, tmp_path)
    held = {"holderIdentity": "somebody", "leaseDurationSeconds": 3600, "renewTime": "2100-01-01T00:00:00.000000Z"}
    bare.delete("coordination.k8s.io/v1", "Lease", NAMESPACE, "jobtree-planner")
    bare.create(
        {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": held,
         "metadata": {"name": "jobtree-planner", "namespace": NAMESPACE}}
    )  # fmt: skip

    both = [
        subprocess.Popen(planner.command(), env=planner.environment(), text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]  # fmt: skip
    said = [each.communicate(timeout=300) for each in both]

    assert [each.returncode for each in both] == [1, 1]
    expected = (
        "error: another planner is at work: somebody holds the lock jobtree-planner; one cycle at a time is enough\n"
    )
    assert [err for _, err in said] == [expected] * 2
    assert bare.ours("Plan") == []
    bare.delete("coordination.k8s.io/v1", "Lease", NAMESPACE, "jobtree-planner")


def test_an_upgrade_goes_on_from_earlier_crds_and_a_rollback_back(bare: Kube, helm: Helm, tmp_path: Path) -> None:
    earlier = tmp_path / "earlier"
    shutil.copytree(CHART, earlier)
    for file in EARLIER.glob("*.yaml"):
        crd = yaml.safe_load(file.read_text())
        for version in crd["spec"]["versions"]:
            version["additionalPrinterColumns"] = [{"name": "OLD", "type": "string", "jsonPath": ".metadata.name"}]
        (earlier / "crds" / file.name).write_text(yaml.safe_dump(crd))
    helm("install", "jobtree", earlier)
    bare.nodes(2)
    pool = budget("org:a", 16)
    pool["spec"]["namespaces"] = ["default"]
    bare.create(pool, run("train", 8))
    planner = _planner(bare, tmp_path)
    planner.run("cycle", *planner.args[5:])
    stored = {kind: {each["metadata"]["uid"] for each in bare.ours(kind)} for kind in ("Run", "Budget", "Lease")}
    assert _columns(bare) == {"OLD"}

    changed = ("upgrade", "jobtree", CHART, "--set-json", 'policy.spec={"solver":{"deadline":"20s"}}')
    refused = helm(*changed, check=False).stderr
    (command,) = re.findall(r"apply them first: kubectl (.*deploy/crds)", refused)
    helm.kubectl(*command.replace("deploy/crds", str(ROOT / "deploy" / "crds")).split())
    helm(*changed)

    assert "OLD" not in _columns(bare)
    assert bare.get(API_VERSION, "Policy", "", "default")["spec"]["solver"] == {"deadline": "20s"}
    bare.create(run("more", 8))
    _planner(bare, tmp_path).run("cycle", *planner.args[5:])
    phases = {each["metadata"]["name"]: each["status"]["phase"] for each in bare.ours("Run")}
    assert phases == {"train": "Running", "more": "Running"}
    assert {kind: uids - {each["metadata"]["uid"] for each in bare.ours(kind)} for kind, uids in stored.items()} == {
        "Run": set(), "Budget": set(), "Lease": set(),
    }  # fmt: skip
    helm("rollback", "jobtree", "1")

    assert "solver" not in bare.get(API_VERSION, "Policy", "", "default")["spec"]
    assert "0 runs start" in _planner(bare, tmp_path).run("cycle", *planner.args[5:]).stdout


def _columns(kube: Kube) -> set[str]:
    versions = [version for crd in _crds(kube) for version in crd["spec"]["versions"]]
    return {column["name"] for version in versions for column in version.get("additionalPrinterColumns", [])}


def test_an_uninstall_leaves_the_ledger_alone(bare: Kube, helm: Helm, tmp_path: Path) -> None:
    before = _released(bare)
    helm("install", "jobtree", CHART)
    bare.nodes(1)
    pool = budget("org:a", 8)
    pool["spec"]["namespaces"] = ["default"]
    bare.create(pool, run("train", 8))
    _planner(bare, tmp_path).run("cycle", "--lake", str(tmp_path / "lake"))
    kept = {kind: names(bare.ours(kind)) for kind in ("Run", "Budget", "Lease", "Plan")}
    assert len(_released(bare)) > len(before) + 5

    helm("uninstall", "jobtree")

    left = _released(bare)
    assert [each for each in left if not each.startswith("ConfigMap jobtree-b")] == before  # budgets and balances
    assert {kind: names(bare.ours(kind)) for kind in kept} == kept
    assert kept["Lease"] != []
    assert bare.ours("Policy") == []
    assert names(bare.objects("v1", "PersistentVolumeClaim")) == ["jobtree-lake"]
    helm("install", "jobtree", CHART)
    again = _planner(bare, tmp_path).run("cycle", "--lake", str(tmp_path / "lake")).stdout
    assert "0 runs start" in again
    assert names(bare.ours("Lease")) == kept["Lease"]


def test_the_charts_crds_are_the_generated_ones() -> None:
    chart = {each.name: each.read_text() for each in (CHART / "crds").iterdir()}
    assert chart == generate()


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ("cycle.every=10", "at '/cycle/every'"),
        ("lake.url=bucket", "at '/lake/url'"),
        ("lake.sice=5Gi", "additional properties 'sice' not allowed"),
        ("nightly.schedule=daily", "at '/nightly/schedule'"),
        ("metrics.port=80", "minimum: got 80, want 1,024"),
        ("serviceAccount.name=Job_Tree", "at '/serviceAccount/name'"),
    ],
)
def test_bad_values_are_refused_by_name(values: str, said: str) -> None:
    helm = _helm()
    done = subprocess.run(
        [helm, "template", CHART, "--set", values], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 1
    assert said in done.stderr


def _helm() -> Path:
    skip_or_fail(name for name in ("helm",) if name not in tools.find())
    return tools.find()["helm"]


def test_the_lake_may_be_a_bucket() -> None:
    _helm()
    documents = [each for each in yaml.safe_load_all(rendered("lake.url=s3://b/lake", "lake.envFromSecret=s3")) if each]
    pods = [each["spec"]["jobTemplate"]["spec"]["template"]["spec"] for each in documents if each["kind"] == "CronJob"]
    assert [each["kind"] for each in documents if each["kind"] == "PersistentVolumeClaim"] == []
    assert ["s3://b/lake" in pod["containers"][0]["args"] for pod in pods] == [True, True]
    assert [pod["containers"][0]["envFrom"] for pod in pods] == [[{"secretRef": {"name": "s3"}}]] * 2
    assert [[each["name"] for each in pod["volumes"]] for pod in pods] == [["tmp"]] * 2


def test_every_pod_of_the_chart_is_restricted() -> None:
    _helm()
    documents = [each for each in yaml.safe_load_all(rendered()) if each]
    specs = [
        each["spec"].get("jobTemplate", each)["spec"] for each in documents if each["kind"] in {"CronJob", "Deployment"}
    ]
    pods = [spec["template"]["spec"] for spec in specs]
    assert len(pods) == 3
    for pod in pods:
        (main,) = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert main["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {"requests", "limits"} == set(main["resources"])
