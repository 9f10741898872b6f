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

{{- define "robots.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (ternary (include "robots.fullname" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- define "robots.labels" -}}
{{ include "robots.labelsWith" (dict "top" . "own" dict) }}
{{- end }}

{{- /* The labels of an object, with its own, which take precedence. Each key is there once. */}}
{{- define "robots.labelsWith" -}}
{{- with .top }}
{{- $labels := dict
  "app.kubernetes.io/name" (include "robots.name" .)
  "app.kubernetes.io/instance" .Release.Name
  "app.kubernetes.io/part-of" "robots-decisions"
  "app.kubernetes.io/version" .Chart.AppVersion
  "app.kubernetes.io/managed-by" .Release.Service
  "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version) }}
{{- toYaml (mustMergeOverwrite (deepCopy .Values.commonLabels) $labels $.own) }}
{{- end }}
{{- end }}

{{- define "robots.image" -}}
{{- with .Values.image -}}
{{ with .registry }}{{ . }}/{{ end }}{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{- /* The most pods at once: those of the autoscaler, and those that a rollout adds. */}}
{{- define "robots.instances" -}}
{{- $pods := ternary .Values.autoscaling.maxReplicas .Values.replicaCount .Values.autoscaling.enabled | int }}
{{- $surge := dig "rollingUpdate" "maxSurge" "25%" .Values.strategy | toString }}
{{- if eq (get .Values.strategy "type") "Recreate" }}{{ $surge = "0" }}{{ end }}
{{- if hasSuffix "%" $surge }}{{ $surge = divf (mul $pods (trimSuffix "%" $surge)) 100 | ceil }}{{ end }}
{{- add $pods ($surge | int) }}
{{- end }}

{{- /* The environment of the service, as YAML. */}}
{{- define "robots.settings" -}}
{{- $settings := dict
  "PACE_INSTANCES" (include "robots.instances" .)
  "RECHECK_FILE" "/etc/robots/recheck/recheck.toml"
  "AGENTS_FILE" "/etc/robots/agents/agents.toml"
  "OVERRIDES_FILE" "/etc/robots/overrides/overrides.jsonl" }}
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
{{- range $name, $value := .Values.settings }}
  {{- /* Helm reads every number of a file as a floating-point one. */}}
  {{- if and (kindIs "float64" $value) (eq (floor $value) $value) }}{{ $value = int64 $value }}{{ end }}
  {{- $_ := set $settings $name (toString $value) }}
{{- end }}
{{- toYaml $settings }}
{{- end }}

{{- /* What sites look for under the host of a signature_agent: the type of each path in an Ingress, as YAML. */}}
{{- define "robots.identityPaths" -}}
/.well-known/http-message-signatures-directory: Exact
/.well-known/signature-agent-card: Exact
/bot: Prefix
{{- end }}
