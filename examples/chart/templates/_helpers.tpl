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

{{- /* What YAML reads as true, false or a large number, as the server reads it. */}}
{{- define "pinfold.setting" -}}
{{- if kindIs "bool" . }}{{ ternary "on" "off" . }}{{ else if kindIs "string" . }}{{ . }}{{ else }}{{ int64 . }}{{ end }}
{{- end }}

{{- /* What cannot work is said before anything is installed. */}}
{{- define "pinfold.check" -}}
{{- $v := .Values }}
{{- if not $v.image.repository }}{{ fail "set image.repository to where the image of `npm run image` was pushed" }}{{ end }}
{{- if not (regexMatch "^https?://[^/]+/?$" $v.url) }}{{ fail "set url to what clients call the server, such as https://registry.example.com" }}{{ end }}
{{- if and $v.database.existingSecret (not $v.masterKey.existingSecret) }}{{ fail "database.existingSecret needs masterKey.existingSecret, which has the key that encrypts every stored secret" }}{{ end }}
{{- if gt (int64 $v.replicas) 1 }}
{{- if not $v.database.existingSecret }}{{ fail "more than one replica needs PostgreSQL: set database.existingSecret" }}{{ end }}
{{- if not (or (hasPrefix "s3:" $v.blobs) $v.storage.existingClaim (has "ReadWriteMany" $v.storage.accessModes)) }}{{ fail "replicas share the blobs: set blobs to a bucket, storage.accessModes to [ReadWriteMany], or storage.existingClaim" }}{{ end }}
{{- end }}
{{- range $name := keys $v.secretSettings }}
{{- if hasKey $v.settings $name }}{{ fail (printf "%s is in settings and in secretSettings" $name) }}{{ end }}
{{- end }}
{{- if and $v.metrics.serviceMonitor.enabled (not $v.metrics.enabled) }}{{ fail "metrics.serviceMonitor.enabled needs metrics.enabled" }}{{ end }}
{{- end }}
