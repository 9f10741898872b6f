{{- define "robots.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- /* The name of the objects, and the beginning of the names of others. */}}
{{- define "robots.fullname" -}}
{{- $name := include "robots.name" . }}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains $name .Release.Name -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "robots.selector" -}}
app.kubernetes.io/name: {{ include "robots.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: service
{{- end }}

{{- define "robots.storeSelector" -}}
app.kubernetes.io/name: robots-valkey
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: store
{{- end }}

{{- define "robots.labels" -}}
app.kubernetes.io/name: {{ include "robots.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{ include "robots.commonLabels" . }}
{{- end }}

{{- define "robots.commonLabels" -}}
app.kubernetes.io/part-of: robots-decisions
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "robots.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{- /* The most pods at once: those of the autoscaler, and one more during a rollout. */}}
{{- define "robots.instances" -}}
{{- add1 (ternary .Values.autoscaling.maxReplicas .Values.replicaCount .Values.autoscaling.enabled) }}
{{- end }}

{{- /* The environment of the service, as YAML. */}}
{{- define "robots.settings" -}}
{{- $settings := dict
  "PACE_INSTANCES" (include "robots.instances" .)
  "RECHECK_FILE" "/etc/robots/recheck/recheck.toml"
  "AGENTS_FILE" "/etc/robots/agents/agents.toml" }}
{{- if .Values.valkey.enabled }}
  {{- $host := printf "%s-valkey.%s.svc.%s" (include "robots.fullname" .) .Release.Namespace .Values.clusterDomain }}
  {{- $_ := set $settings "REDIS_URL" (printf "redis://%s:6379" $host) }}
{{- end }}
{{- if .Values.storeSecret }}{{- $_ := set $settings "SECRETS_DIR" "/run/secrets/robots" }}{{- end }}
{{- with .Values.storePasswordKey }}{{- $_ := set $settings "REDIS_PASSWORD_FILE" (print "/run/secrets/robots/" .) }}{{- end }}
{{- if .Values.apiKeysSecret }}{{- $_ := set $settings "API_KEYS_FILE" "/run/secrets/robots-keys/api-keys" }}{{- end }}
{{- if .Values.archiveClaim }}{{- $_ := set $settings "ARCHIVE" "/var/lib/robots/archive" }}{{- end }}
{{- if .Values.allowUnauthenticated }}{{- $_ := set $settings "ALLOW_UNAUTHENTICATED" "1" }}{{- end }}
{{- with .Values.tracing.endpoint }}{{- $_ := set $settings "OTEL_EXPORTER_OTLP_ENDPOINT" . }}{{- end }}
{{- toYaml (mergeOverwrite $settings .Values.settings) }}
{{- end }}
