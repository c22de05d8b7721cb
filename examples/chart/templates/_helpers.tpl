{{- define "pinfold.name" -}}
{{- if contains "pinfold" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-pinfold" (.Release.Name | trunc 42 | trimSuffix "-") }}{{ end }}
{{- end }}

{{- define "pinfold.selector" -}}
app.kubernetes.io/name: pinfold
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "pinfold.labels" -}}
{{ include "pinfold.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | quote }}
{{- end }}

{{- define "pinfold.port" -}}
{{- if .Values.tls.existingSecret }}8443{{ else }}8080{{ end }}
{{- end }}

{{- define "pinfold.servicePort" -}}
{{- if .Values.service.port }}{{ int64 .Values.service.port }}{{ else if .Values.tls.existingSecret }}443{{ else }}80{{ end }}
{{- end }}

{{- define "pinfold.claim" -}}
{{- .Values.storage.existingClaim | default (printf "%s-data" (include "pinfold.name" .)) }}
{{- end }}

{{- define "pinfold.claimSpec" -}}
accessModes: {{ toJson .Values.storage.accessModes }}
{{- with .Values.storage.storageClass }}
storageClassName: {{ . | quote }}
{{- end }}
resources:
  requests:
    storage: {{ .Values.storage.size | quote }}
{{- end }}

{{- /* True if several servers can run at the same time. */}}
{{- define "pinfold.shared" -}}
{{- if and .Values.database.existingSecret (or (hasPrefix "s3:" .Values.blobs) .Values.storage.existingClaim (has "ReadWriteMany" .Values.storage.accessModes)) }}yes{{ end }}
{{- end }}

{{- /* True if the values allow more than one server. */}}
{{- define "pinfold.several" -}}
{{- if or .Values.autoscaling.enabled (gt (int64 .Values.replicas) 1) }}yes{{ end }}
{{- end }}

{{- define "pinfold.strategy" -}}
{{- .Values.strategy | default (ternary "rolling" "recreate" (ne (include "pinfold.shared" .) "")) }}
{{- end }}

{{- /* With PostgreSQL and a bucket, no data is in a volume. */}}
{{- define "pinfold.scratch" -}}
{{- if and .Values.database.existingSecret (hasPrefix "s3:" .Values.blobs) (not .Values.storage.existingClaim) }}yes{{ end }}
{{- end }}

{{- /* Text of a value that YAML reads as a boolean or a large number, in the form that the server accepts. */}}
{{- define "pinfold.setting" -}}
{{- if kindIs "bool" . }}{{ ternary "on" "off" . }}{{ else if kindIs "string" . }}{{ . }}{{ else }}{{ int64 . }}{{ end }}
{{- end }}

{{- /* Checks of values, before anything is installed. */}}
{{- define "pinfold.check" -}}
{{- $v := .Values }}
{{- if not $v.image.repository }}{{ fail "set image.repository to the repository to which you have pushed the image of `npm run image`" }}{{ end }}
{{- if not (regexMatch "^https?://[^/]+/?$" $v.url) }}{{ fail "set url to the public URL of the server, such as https://registry.example.com" }}{{ end }}
{{- if and $v.database.existingSecret (not $v.masterKey.existingSecret) }}{{ fail "database.existingSecret needs masterKey.existingSecret, the secret with the key that encrypts all stored secrets" }}{{ end }}
{{- if or (include "pinfold.several" .) (eq $v.strategy "rolling") }}
{{- $what := ternary "more than one replica" "a rolling update" (ne (include "pinfold.several" .) "") }}
{{- if not $v.database.existingSecret }}{{ fail (printf "%s needs PostgreSQL: set database.existingSecret" $what) }}{{ end }}
{{- if not (include "pinfold.shared" .) }}{{ fail (printf "%s needs blobs that servers share: set blobs to a bucket, storage.accessModes to [ReadWriteMany], or storage.existingClaim" $what) }}{{ end }}
{{- end }}
{{- if and $v.autoscaling.enabled (lt (int64 $v.autoscaling.maxReplicas) (int64 $v.autoscaling.minReplicas)) }}{{ fail "autoscaling.maxReplicas is less than autoscaling.minReplicas" }}{{ end }}
{{- range $name := keys $v.secretSettings }}
{{- if hasKey $v.settings $name }}{{ fail (printf "%s is in settings and in secretSettings" $name) }}{{ end }}
{{- end }}
{{- if and $v.metrics.serviceMonitor.enabled (not $v.metrics.enabled) }}{{ fail "metrics.serviceMonitor.enabled needs metrics.enabled" }}{{ end }}
{{- end }}
