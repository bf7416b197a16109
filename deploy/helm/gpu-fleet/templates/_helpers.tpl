{{- define "jobtree.labels" -}}
app.kubernetes.io/name: jobtree
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "jobtree.account" -}}
{{ .Values.serviceAccount.name | default "jobtree" }}
{{- end }}

{{- define "jobtree.lake" -}}
{{ .Values.lake.url | default "/var/lib/jobtree/lake" }}
{{- end }}

{{- define "jobtree.claim" -}}
{{ .Values.lake.existingClaim | default "jobtree-lake" }}
{{- end }}

{{/* The pod of all three: what it may do is nothing, but to talk and to write to its two volumes. Takes (dict "root" $
     "account" NAME "args" LIST "resources" DICT), and
     "token" where it talks to the API server, "writes" where it writes to the lake, "serves" where it has a port. */}}
{{- define "jobtree.pod" -}}
serviceAccountName: {{ .account }}
automountServiceAccountToken: {{ not (empty .token) }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
{{- with .root.Values.nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations: {{ toJson . }}
{{- end }}
containers:
- name: jobtree
  image: "{{ .root.Values.image.repository }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}"
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  args: {{ toJson .args }}
  env:
  - {name: JOBTREE_NAMESPACE, value: {{ .root.Release.Namespace | quote }}}
  - {name: HOME, value: /tmp}
  {{- with .root.Values.lake.envFromSecret }}
  envFrom:
  - secretRef: {name: {{ . }}}
  {{- end }}
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities: {drop: [ALL]}
  resources: {{ toJson .resources }}
  {{- if .serves }}
  ports:
  - {name: metrics, containerPort: {{ .root.Values.metrics.port }}}
  readinessProbe:
    httpGet: {path: /healthz, port: metrics}
  livenessProbe:
    httpGet: {path: /healthz, port: metrics}
    periodSeconds: 30
    timeoutSeconds: 10
    failureThreshold: 10
  {{- end }}
  volumeMounts:
  - {name: tmp, mountPath: /tmp}
  {{- if not .root.Values.lake.url }}
  - {name: lake, mountPath: /var/lib/jobtree{{ if not .writes }}, readOnly: true{{ end }}}
  {{- end }}
volumes:
- {name: tmp, emptyDir: {}}
{{- if not .root.Values.lake.url }}
- {name: lake, persistentVolumeClaim: {claimName: {{ include "jobtree.claim" .root }}}}
{{- end }}
{{- end }}
