{{- define "pinfold.env" -}}
- name: PINFOLD_LISTEN
  value: {{ printf "%s:%s" .Values.listenAddress (include "pinfold.port" .) | quote }}
- name: PINFOLD_URL
  value: {{ .Values.url | trimSuffix "/" | quote }}
- name: PINFOLD_DATA
  value: /var/lib/pinfold
- name: PINFOLD_BLOBS
  value: {{ .Values.blobs | default "/var/lib/pinfold/blobs" | quote }}
{{- if .Values.blobCredentials.existingSecret }}
- name: AWS_ACCESS_KEY_ID
  valueFrom:
    secretKeyRef: { name: {{ .Values.blobCredentials.existingSecret | quote }}, key: access-key-id }
- name: AWS_SECRET_ACCESS_KEY
  valueFrom:
    secretKeyRef: { name: {{ .Values.blobCredentials.existingSecret | quote }}, key: secret-access-key }
{{- end }}
{{- with .Values.database }}
{{- if .existingSecret }}
- name: PINFOLD_DATABASE
  valueFrom:
    secretKeyRef: { name: {{ .existingSecret | quote }}, key: {{ .key | quote }} }
{{- end }}
{{- end }}
{{- with .Values.masterKey }}
{{- if .existingSecret }}
- name: PINFOLD_MASTER_KEY
  valueFrom:
    secretKeyRef: { name: {{ .existingSecret | quote }}, key: {{ .key | quote }} }
{{- end }}
{{- end }}
{{- if .Values.tls.existingSecret }}
- name: PINFOLD_TLS_CERT
  value: /run/tls/tls.crt
- name: PINFOLD_TLS_KEY
  value: /run/tls/tls.key
{{- end }}
{{- if .Values.metrics.enabled }}
- name: PINFOLD_METRICS_LISTEN
  value: {{ printf "%s:%d" .Values.listenAddress (int64 .Values.metrics.port) | quote }}
{{- end }}
{{- if and .Values.database.existingSecret (eq (include "pinfold.strategy" .) "recreate") }}
- name: PINFOLD_MIGRATE_AT_START
  value: "on"
{{- end }}
{{- range $name, $value := .Values.settings }}
- name: {{ $name }}
  value: {{ include "pinfold.setting" $value | quote }}
{{- end }}
{{- range $name, $from := .Values.secretSettings }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef: { name: {{ $from.name | quote }}, key: {{ $from.key | quote }} }
{{- end }}
{{- end }}

{{- define "pinfold.image" -}}
{{- with .Values.image }}
image: {{ ternary (printf "%s@%s" .repository .digest) (printf "%s:%s" .repository (.tag | default $.Chart.AppVersion)) (ne .digest "") | quote }}
imagePullPolicy: {{ .pullPolicy }}
{{- end }}
{{- end }}

{{- define "pinfold.containerRights" -}}
securityContext:
  readOnlyRootFilesystem: true
  allowPrivilegeEscalation: false
  capabilities: { drop: [ALL] }
{{- end }}

{{- define "pinfold.mounts" -}}
- name: data
  mountPath: /var/lib/pinfold
{{- if .Values.tls.existingSecret }}
- name: tls
  mountPath: /run/tls
  readOnly: true
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "pinfold.container" -}}
{{- $scheme := ternary "HTTPS" "HTTP" (ne .Values.tls.existingSecret "") -}}
name: pinfold
{{- include "pinfold.image" . }}
args: [serve]
env:
  {{- include "pinfold.env" . | nindent 2 }}
ports:
  - name: http
    containerPort: {{ include "pinfold.port" . }}
  {{- if .Values.metrics.enabled }}
  - name: metrics
    containerPort: {{ int64 .Values.metrics.port }}
  {{- end }}
startupProbe:
  httpGet: { path: /readyz, port: http, scheme: {{ $scheme }} }
  periodSeconds: 5
  timeoutSeconds: 4
  failureThreshold: {{ div (add (int64 .Values.startupSeconds) 4) 5 }}
readinessProbe:
  httpGet: { path: /readyz, port: http, scheme: {{ $scheme }} }
  periodSeconds: 5
  timeoutSeconds: 4
  failureThreshold: 2
# Does not use /readyz: a restart does not help if the database is unavailable.
livenessProbe:
  httpGet: { path: /healthz, port: http, scheme: {{ $scheme }} }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
# After SIGTERM, the server accepts no connections. The sleep gives load balancers time to stop sending them.
lifecycle:
  preStop:
    sleep: { seconds: {{ int64 .Values.preStopSeconds }} }
{{ include "pinfold.containerRights" . }}
resources: {{ toJson .Values.resources }}
volumeMounts:
  {{- include "pinfold.mounts" . | nindent 2 }}
{{- end }}

{{- /* Volumes besides the data. */}}
{{- define "pinfold.ownVolumes" -}}
{{- with .Values.tls.existingSecret }}
- name: tls
  secret: { secretName: {{ . | quote }}, defaultMode: 0440 }
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* The volume of a stateful set comes from its template. */}}
{{- define "pinfold.volumes" -}}
{{- if include "pinfold.scratch" . }}
- name: data
  emptyDir: {}
{{- else if or .Values.database.existingSecret .Values.storage.existingClaim }}
- name: data
  persistentVolumeClaim: { claimName: {{ include "pinfold.claim" . | quote }} }
{{- end }}
{{- include "pinfold.ownVolumes" . }}
{{- end }}

{{- define "pinfold.podRights" -}}
# Variables of service links would also begin with PINFOLD_, and the server refuses unknown settings.
enableServiceLinks: false
automountServiceAccountToken: false
{{- with .Values.serviceAccountName }}
serviceAccountName: {{ . | quote }}
{{- end }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "pinfold.pod" -}}
metadata:
  labels:
    {{- include "pinfold.labels" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.podAnnotations }}
  annotations: {{ toJson . }}
  {{- end }}
spec:
  {{- include "pinfold.podRights" . | nindent 2 }}
  # The sum of the preStop sleep, PINFOLD_LAMEDUCK_MS and PINFOLD_DRAIN_MS (rounded up), and 10 seconds.
  terminationGracePeriodSeconds: {{ add (int64 .Values.preStopSeconds) (div (add (int64 (.Values.settings.PINFOLD_LAMEDUCK_MS | default 0)) (int64 (.Values.settings.PINFOLD_DRAIN_MS | default 10000)) 999) 1000) 10 }}
  containers:
    - {{ include "pinfold.container" . | nindent 6 | trim }}
  {{- with include "pinfold.volumes" . | trim }}
  volumes:
    {{- . | nindent 4 }}
  {{- end }}
  {{- if include "pinfold.several" . }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "pinfold.selector" . | nindent 10 }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector: {{ toJson . }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations: {{ toJson . }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity: {{ toJson . }}
  {{- end }}
{{- end }}
