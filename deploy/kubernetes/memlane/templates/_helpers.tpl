{{- define "memlane.name" -}}
{{ .Values.fullnameOverride | default .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{/* Labels that select the pods of a component: (list $ "worker"). */}}
{{- define "memlane.selector" -}}
app.kubernetes.io/name: memlane
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "memlane.labels" -}}
{{ include "memlane.selector" . }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
helm.sh/chart: {{ (index . 0).Chart.Name }}-{{ (index . 0).Chart.Version }}
{{- end }}

{{- define "memlane.image" -}}
{{- with .Values.image }}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{- define "memlane.fromSecret" -}}
valueFrom:
  secretKeyRef:
    name: {{ index . 0 }}
    key: {{ index . 1 }}
{{- end }}

{{/* Environment of every process: what the chart decides first, then the given settings. */}}
{{- define "memlane.env" -}}
- name: MEMLANE_DATABASE_URL
  {{- include "memlane.fromSecret" (list .Values.database.existingSecret .Values.database.key) | nindent 2 }}
- name: MEMLANE_BROKER_URL
  {{- include "memlane.fromSecret" (list .Values.broker.existingSecret .Values.broker.key) | nindent 2 }}
- name: MEMLANE_VECTORS
  value: {{ .Values.vectors.backend }}
{{- if eq .Values.vectors.backend "chroma" }}
- name: MEMLANE_CHROMA_URL
  value: {{ required "vectors.chromaUrl is empty: give the URL of Chroma, or set vectors.backend to pgvector." .Values.vectors.chromaUrl | quote }}
{{- end }}
- name: MEMLANE_HOST
  value: 0.0.0.0
- name: MEMLANE_PORT
  value: "8000"
- name: MEMLANE_PROBE_PORT
  value: "9100"
- name: MEMLANE_DATA_DIR
  value: /var/lib/memlane
- name: MEMLANE_STOP_S
  value: {{ .Values.worker.stopSeconds | quote }}
{{- with .Values.metrics }}
{{- if .existingSecret }}
- name: MEMLANE_METRICS_TOKEN
  {{- include "memlane.fromSecret" (list .existingSecret .key) | nindent 2 }}
{{- end }}
{{- end }}
{{- range $name, $value := .Values.settings }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- range $name, $from := .Values.secretSettings }}
- name: {{ $name }}
  {{- include "memlane.fromSecret" (list $from.secret $from.key) | nindent 2 }}
{{- end }}
{{- end }}

{{/* Parts of every pod besides its container: (list $ "worker"). */}}
{{- define "memlane.pod" -}}
{{- $root := index . 0 }}
serviceAccountName: {{ $root.Values.serviceAccountName }}
automountServiceAccountToken: false
# A Service named memlane would set MEMLANE_PORT to an address.
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with $root.Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
  {{- range $key := list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ $key }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "memlane.selector" $ | nindent 8 }}
  {{- end }}
volumes:
  - name: tmp
    emptyDir: {}
  - name: home
    emptyDir: {}
  - name: data
    emptyDir: {}
{{- end }}

{{- define "memlane.container" -}}
image: {{ include "memlane.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - name: tmp
    mountPath: /tmp
  - name: home
    mountPath: /home/memlane
  - name: data
    mountPath: /var/lib/memlane
{{- end }}

{{/* Probes of a container: (list "readiness path" "port"). None of them asks the database or the
     broker, so an outage of either restarts no pod. */}}
{{- define "memlane.probes" -}}
startupProbe:
  httpGet: {path: /livez, port: {{ index . 1 }}}
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: 90
livenessProbe:
  httpGet: {path: /livez, port: {{ index . 1 }}}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: {{ index . 0 }}, port: {{ index . 1 }}}
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 3
{{- end }}
