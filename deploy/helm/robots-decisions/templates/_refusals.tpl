{{- /* Fail, with a sentence for each, if the values ask for what cannot work. */}}
{{- define "robots.refuse" -}}
{{- $problems := list }}
{{- $env := include "robots.settings" . | fromYaml }}
{{- $open := has (lower (get $env "ALLOW_UNAUTHENTICATED")) (list "1" "true" "t" "yes" "y" "on") }}
{{- $policy := .Values.networkPolicy }}
{{- $extra := dict }}
{{- range .Values.extraEnv }}{{ $_ := set $extra .name true }}{{ end }}
{{- if not (or $open (get $env "API_KEYS_FILE") (hasKey $extra "API_KEYS_FILE") (hasKey $extra "ALLOW_UNAUTHENTICATED")) }}
  {{- $problems = append $problems "The service does not start without API keys: set apiKeysSecret to a secret with a file api-keys, or allowUnauthenticated=true if everyone who reaches the pods may ask." }}
{{- end }}
{{- $url := get $env "REDIS_URL" }}
{{- if not (or .Values.storeSecret $url (hasKey $extra "REDIS_URL")) }}
  {{- $problems = append $problems "The image has no store: set storeSecret to a secret with a file redis_url, or valkey.enabled=true to try the service with a Valkey that forgets everything." }}
{{- end }}
{{- if and .Values.valkey.enabled (or .Values.storeSecret (hasKey .Values.settings "REDIS_URL")) }}
  {{- $problems = append $problems "valkey.enabled starts a store that would not be the only one: leave it out, or storeSecret and settings.REDIS_URL." }}
{{- end }}
{{- if and .Values.storePasswordKey (not .Values.storeSecret) }}
  {{- $problems = append $problems "storePasswordKey names a file of storeSecret: set storeSecret, too." }}
{{- end }}
{{- if and $policy.enabled (not .Values.valkey.enabled) (not $policy.store) (not $policy.extraEgress) }}
  {{- $problems = append $problems "The network policy lets the pods reach no store: set networkPolicy.store to where the Redis servers and sentinels are, for example [{ipBlock: {cidr: 10.20.0.0/24}}]." }}
{{- end }}
{{- if and $policy.enabled .Values.ingress.enabled (not $policy.ingressController) (not $policy.extraIngress) }}
  {{- $problems = append $problems "The network policy keeps out the Ingress: set networkPolicy.ingressController to the pods of its controller." }}
{{- end }}
{{- if and $policy.enabled .Values.gateway.enabled (not $policy.ingressController) (not $policy.extraIngress) }}
  {{- $problems = append $problems "The network policy keeps out the Gateway: set networkPolicy.ingressController to its pods." }}
{{- end }}
{{- if and .Values.ingress.enabled (not .Values.ingress.hosts) (not .Values.ingress.identityHosts) }}
  {{- $problems = append $problems "ingress.enabled needs a host: set ingress.hosts, for example [robots.example.com]." }}
{{- end }}
{{- if and .Values.gateway.enabled (not .Values.gateway.parentRefs) }}
  {{- $problems = append $problems "gateway.enabled needs a Gateway: set gateway.parentRefs, for example [{name: web, namespace: gateways}]." }}
{{- end }}
{{- if and $policy.enabled .Values.tracing.endpoint (not .Values.tracing.collector) (not $policy.extraEgress) }}
  {{- $problems = append $problems "The network policy lets the pods reach no collector of traces: set tracing.collector to its pods or addresses." }}
{{- end }}
{{- if and .Values.autoscaling.enabled (gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas)) }}
  {{- $problems = append $problems (printf "autoscaling.minReplicas=%d is more than autoscaling.maxReplicas=%d." (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas)) }}
{{- end }}
{{- if ne (get $env "PORT" | default "8080") "8080" }}
  {{- $problems = append $problems (printf "settings.PORT=%s: the probes and the Service ask port 8080. Leave it out; service.port is the port of the Service." (get $env "PORT")) }}
{{- end }}
{{- if or (hasPrefix "127." (get $env "HOST")) (has (get $env "HOST") (list "" "::1" "localhost")) }}
  {{- $problems = append $problems (printf "settings.HOST=%s: no probe and no client would reach the pods. Use :: or 0.0.0.0." (get $env "HOST")) }}
{{- end }}
{{- if or (regexMatch "://[^/]*:[^/@]+@" $url) (regexMatch "[?&][a-z_]*password=" $url) }}
  {{- $problems = append $problems "settings.REDIS_URL has a password, which everyone who may read ConfigMaps would see: put the URL into the file redis_url of storeSecret." }}
{{- end }}
{{- if hasKey .Values.settings "PERMIT_SECRET" }}
  {{- $problems = append $problems "settings.PERMIT_SECRET would be readable in a ConfigMap: put it into a file permit_secret of storeSecret." }}
{{- end }}
{{- if regexMatch "://[^/]*@" (get $env "FETCH_PROXY") }}
  {{- $problems = append $problems "settings.FETCH_PROXY has credentials, which everyone who may read ConfigMaps would see: put the URL into a file fetch_proxy of storeSecret." }}
{{- end }}
{{- if and $policy.enabled (get $env "FETCH_PROXY") (not $policy.fetchProxy) (not $policy.extraEgress) }}
  {{- $problems = append $problems "The network policy lets the pods reach no proxy: set networkPolicy.fetchProxy to its pods or addresses, for example [{ipBlock: {cidr: 10.20.0.9/32}}], and fetchProxyPorts to its port." }}
{{- end }}
{{- if $problems }}
  {{- fail (printf "\n\n%s\n" (join "\n" $problems)) }}
{{- end }}
{{- end }}
